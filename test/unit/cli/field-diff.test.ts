// What differs between two documents, as lines.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type DiffLine, fieldDiff } from "../../../src/cli/field-diff.ts";
import type { JsonObject } from "../../../src/core/json.ts";
import { listChanges } from "../../../src/core/merge-patch.ts";

function diff(before: JsonObject, after: JsonObject): string[] {
  return fieldDiff(listChanges(before, after)).map(({ sign, text }) => `${sign} ${text}`);
}

test("a field each: changed, added, removed; a model in its short form is its id", () => {
  const before = { version: 1, prune: true, context: { default: 2048 }, models: { "acme/a:Q8_0": { ctxSize: 512 } } };
  const after = {
    version: 1,
    context: { default: 4096 },
    models: { "acme/a:Q8_0": { keep: true }, "acme/b:Q8_0": {} },
  };
  assert.deepEqual(diff(before, after), [
    "- prune: true",
    "~ context.default: 2048 → 4096",
    "- models.acme/a:Q8_0.ctxSize: 512",
    "+ models.acme/a:Q8_0.keep: true",
    "+ models.acme/b:Q8_0",
  ]);
  assert.deepEqual(diff(before, before), []);
});

test("what is added with several fields has a line for each", () => {
  const model = { ctxSize: 512, preset: { "top-k": 4 }, lora: [{ source: "a.gguf", scale: 2 }, { source: "b.gguf" }] };
  assert.deepEqual(diff({}, { models: { "acme/a:Q8_0": model } }), [
    "+ models:",
    "+   acme/a:Q8_0:",
    "+     ctxSize: 512",
    "+     preset:",
    "+       top-k: 4",
    "+     lora:",
    '+       - source: "a.gguf"',
    "+         scale: 2",
    '+       - source: "b.gguf"',
  ]);
});

test("a list, and a text of several lines, as a unified diff without what is far from a difference", () => {
  const lines = Array.from({ length: 20 }, (_, index) => `w${index}:1`);
  const workers = (list: readonly string[]): JsonObject => ({ rpc: { workers: list } });
  assert.deepEqual(diff(workers(lines), workers(lines.toSpliced(9, 1, "new:1", "newer:1"))), [
    "~ rpc.workers:",
    "    …",
    ...[6, 7, 8].map((index) => `    - "w${index}:1"`),
    '-   - "w9:1"',
    '+   - "new:1"',
    '+   - "newer:1"',
    ...[10, 11, 12].map((index) => `    - "w${index}:1"`),
    "    …",
  ]);
  assert.deepEqual(diff({ text: "one\ntwo\nthree" }, { text: "one\n2\nthree" }), [
    "~ text:",
    "    one",
    "-   two",
    "+   2",
    "    three",
  ]);
  assert.deepEqual(diff(workers([]), workers(["a:1"])), ["~ rpc.workers:", '+   - "a:1"']);
});

test("the lines of a unified diff make both sides, in order", () => {
  const list = fc.array(fc.constantFrom("a", "b", "c"), { minLength: 1, maxLength: 4 });
  fc.assert(
    fc.property(list, list, (before, after) => {
      const [, ...lines] = fieldDiff(listChanges({ key: before }, { key: after })).map(
        ({ sign, text }): DiffLine => ({ sign, text: text.trim() }),
      );
      if (before.join() === after.join()) return assert.equal(lines.length, 0);
      const side = (other: string): string[] => lines.filter(({ sign }) => sign !== other).map(({ text }) => text);
      assert.deepEqual(
        side("+"),
        before.map((item) => `- "${item}"`),
      );
      assert.deepEqual(
        side("-"),
        after.map((item) => `- "${item}"`),
      );
    }),
  );
});
