// Documents that are too large, or made to be slow: refused before anything looks at them closely.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSource } from "../../../../src/desired/document/parse.ts";

test("a text that is meant to be slow, or to end the process, is refused for what it is", () => {
  const much = 30_000;
  for (const [what, text, message] of [
    ["long", "#".repeat(300_000), /exceeds the limit of 262144 bytes$/],
    [
      "keys of one map",
      Array.from({ length: 20_000 }, (_, n) => `k${n}: 1\n`).join(""),
      /exceeds the limit of 5000 values$/,
    ],
    ["many values", `prune: [${"[],".repeat(6_000)}]\n`, /exceeds the limit of 5000 values$/],
    ["maps in maps", "{".repeat(much), /more than 50 levels/],
    ["lists in lists", "[".repeat(much), /more than 50 levels/],
    ["lists in lists, by dashes", "- ".repeat(much), /more than 50 levels/],
    ["keys in keys", "? ".repeat(much), /more than 50 levels/],
    ["values in values", "a: ".repeat(much / 2), /more than 50 levels/],
    ["quotes", '"'.repeat(1_000), /Missing closing|Unexpected/],
    [
      "one list a hundred times",
      `version: 1\nmodels:\n  - &x [${"1,".repeat(100)}]\n${"  - *x\n".repeat(90)}`,
      /exceeds the limit of 5000 values$/,
    ],
    [
      "one text a hundred times",
      `version: 1\nmodels:\n  - &x ${"x".repeat(10_000)}\n${"  - *x\n".repeat(90)}`,
      /exceeds the limit of 262144 bytes$/,
    ],
  ] as const) {
    const parsed = parseSource(text);
    assert.ok(!parsed.ok, what);
    assert.match(parsed.problems[0]?.message ?? "", message, what);
    assert.ok(parsed.problems.length <= 20 && JSON.stringify(parsed).length < 12_000, what);
  }
});

test("a key is shown on one line, and acts on no terminal", () => {
  const parsed = parseSource('version: 1\n"\\e[2Jx\\n::add-mask::y": 1\n');
  assert.deepEqual(parsed.ok ? [] : parsed.problems.map(({ path }) => path), [" [2Jx ::add-mask::y"]);
});
