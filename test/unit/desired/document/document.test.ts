// How edits of the document combine: the file's author and the callers of the API each keep what they changed.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { DocumentInput } from "../../../../schemas/document.ts";
import { equalJson, type Json } from "../../../../src/core/json.ts";
import { applyMergePatch, listChanges } from "../../../../src/core/merge-patch.ts";
import {
  type DocumentTree,
  emptyTree,
  mergeFile,
  patchInput,
  toDesired,
  toInput,
  toTree,
} from "../../../../src/desired/document/document.ts";
import { validateDocument } from "../../../../src/desired/document/validate.ts";

const runs = { seed: 42, numRuns: 500 };

function check<T>(arbitrary: fc.Arbitrary<T>, property: (value: T) => void): void {
  fc.assert(fc.property(arbitrary, property), runs);
}

const size = fc.integer({ min: 1, max: 1 << 20 });
const fields = fc.record(
  {
    ctxSize: size,
    keep: fc.boolean(),
    source: fc.constant("./x.gguf"),
    revision: fc.constant("v2"),
    preset: fc.dictionary(
      fc.constantFrom("threads", "flash-attn"),
      fc.constantFrom<string | number | boolean>("on", 2, true),
    ),
  },
  { requiredKeys: [] },
);
const modelIds = ["acme/a:Q8_0", "acme/b:tiny", "Acme/Qwen2.5:foo.Bar", "local/c:Q4_0"];
const tree: fc.Arbitrary<DocumentTree> = fc
  .record(
    {
      version: fc.constant(1),
      models: fc.dictionary(fc.constantFrom(...modelIds), fields),
      context: fc.record({ default: size }, { requiredKeys: [] }),
      prune: fc.boolean(),
      suspend: fc.boolean(),
      rpc: fc.record(
        {
          mode: fc.constantFrom("single", "rpc"),
          workers: fc.uniqueArray(fc.constantFrom("10.0.0.1:5", "10.0.0.2:5")),
        },
        { requiredKeys: [] },
      ),
      speech: fc.record(
        {
          transcription: fc.record({ model: fc.constantFrom("base", "ggml-base.en.bin") }),
          synthesis: fc.record({ voice: fc.constantFrom("en_US-lessac-medium", "pt_PT-tugão-medium") }),
          start: fc.constantFrom("lazy", "now"),
        },
        { requiredKeys: [] },
      ),
    },
    { requiredKeys: ["version"] },
  )
  .map((value) => JSON.parse(JSON.stringify(value)) as DocumentTree);

test("a document survives the way into the tree and out again", () => {
  check(tree, (value) => {
    const input = toInput(value);
    assert.ok(equalJson(toTree(input), value));
    assert.ok(validateDocument(JSON.parse(JSON.stringify(input))).ok);
  });
});

test("the order of models and the short form survive", () => {
  const input: DocumentInput = { version: 1, models: ["acme/b:Q8_0", { id: "acme/a:Q8_0", ctxSize: 5 }, "acme/c:1"] };
  assert.deepEqual(toInput(toTree(input)), input);
  assert.deepEqual(
    toDesired(toTree(input)).models.map((model) => model.id),
    ["acme/b:Q8_0", "acme/a:Q8_0", "acme/c:1"],
  );
});

test("defaults are filled in for the planner alone", () => {
  assert.deepEqual(toDesired(emptyTree), {
    version: 1,
    context: {},
    memory: {},
    models: [],
    prune: false,
    pruneAfter: 60,
    allowEmpty: false,
    suspend: false,
    rpc: { mode: "single", workers: [], minWorkers: 0, allowPublicWorkers: false },
    speech: null,
    removals: [],
    spared: [],
  });
  assert.deepEqual(emptyTree, { version: 1 });
});

test("a file that did not change changes nothing, whatever the document became meanwhile", () => {
  check(fc.tuple(tree, tree), ([file, current]) => assert.ok(equalJson(mergeFile(current, file, file), current)));
});

test("where nobody else wrote, the document becomes the file", () => {
  check(fc.tuple(tree, tree), ([last, file]) => assert.ok(equalJson(mergeFile(last, last, file), file)));
});

test("an edit of the file is in the document afterwards, and applying it again changes nothing", () => {
  check(fc.tuple(tree, tree, tree), ([current, last, file]) => {
    const merged = mergeFile(current, last, file);
    for (const { path, after } of listChanges(last, file)) {
      const there = valueAt(merged, path);
      if (after === undefined) assert.equal(there, undefined);
      else assert.ok(there !== undefined && contains(there, after), path.join("."));
    }
    assert.ok(equalJson(mergeFile(merged, file, file), merged));
  });
});

test("edits of different keys both survive", () => {
  check(fc.tuple(tree, tree, tree), ([base, byFile, byCall]) => {
    const fileKeys = listChanges(base, byFile).map((change) => change.path);
    const calls = listChanges(base, byCall).filter((change) => !fileKeys.some((path) => overlaps(path, change.path)));
    const current = calls.reduce(
      (value, change) => applyMergePatch(value, patchOf(change.path, change.after ?? null)),
      base as Json,
    ) as DocumentTree;
    const merged = mergeFile(current, base, byFile);
    for (const { path, after } of calls) {
      const there = valueAt(merged, path);
      assert.ok(
        after === undefined ? there === undefined : there !== undefined && equalJson(there, after),
        `lost ${path.join(".")}`,
      );
    }
    for (const { path, after } of listChanges(base, byFile)) {
      const there = valueAt(merged, path);
      assert.ok(
        after === undefined ? there === undefined : there !== undefined && contains(there, after),
        `lost ${path.join(".")}`,
      );
    }
  });
});

test("what is merged is a document again", () => {
  check(fc.tuple(tree, tree, tree), ([current, last, file]) =>
    assert.ok(validateDocument(toInput(mergeFile(current, last, file))).ok),
  );
});

const base = toTree({
  version: 1,
  models: [{ id: "acme/a:Q8_0", ctxSize: 1, source: "./a.gguf" }, "acme/b:Q8_0"],
  prune: false,
});
const edits: readonly (readonly [why: string, current: DocumentInput, file: DocumentInput, merged: DocumentInput])[] = [
  [
    "the same key: the file came later",
    { ...toInput(base), prune: true },
    { ...toInput(base), models: [{ id: "acme/a:Q8_0", ctxSize: 2, source: "./a.gguf" }, "acme/b:Q8_0"] },
    { version: 1, models: [{ id: "acme/a:Q8_0", ctxSize: 2, source: "./a.gguf" }, "acme/b:Q8_0"], prune: true },
  ],
  [
    "a call added a model, the file removed another",
    { ...toInput(base), models: [...(toInput(base).models ?? []), "acme/c:Q8_0"] },
    { ...toInput(base), models: [{ id: "acme/a:Q8_0", ctxSize: 1, source: "./a.gguf" }] },
    { version: 1, models: [{ id: "acme/a:Q8_0", ctxSize: 1, source: "./a.gguf" }, "acme/c:Q8_0"], prune: false },
  ],
  [
    "a model that a call removed and the file then edited comes back whole",
    { version: 1, models: ["acme/b:Q8_0"], prune: false },
    { ...toInput(base), models: [{ id: "acme/a:Q8_0", ctxSize: 2, source: "./a.gguf" }, "acme/b:Q8_0"] },
    { version: 1, models: ["acme/b:Q8_0", { id: "acme/a:Q8_0", ctxSize: 2, source: "./a.gguf" }], prune: false },
  ],
  [
    "of a list that a call removed only the edited model comes back",
    { version: 1, prune: false },
    { ...toInput(base), models: [{ id: "acme/a:Q8_0", ctxSize: 2, source: "./a.gguf" }, "acme/b:Q8_0"] },
    { version: 1, prune: false, models: [{ id: "acme/a:Q8_0", ctxSize: 2, source: "./a.gguf" }] },
  ],
  [
    "the file's list is gone, what a call added goes with it",
    { ...toInput(base), models: [...(toInput(base).models ?? []), "acme/c:Q8_0"] },
    { version: 1, prune: false },
    { version: 1, prune: false },
  ],
];

for (const [why, current, file, merged] of edits)
  test(why, () => assert.deepEqual(toInput(mergeFile(toTree(current), base, toTree(file))), merged));

const patches: readonly (readonly [why: string, patch: { [key: string]: Json }, input: unknown])[] = [
  [
    "a model's field",
    { models: { "acme/b:Q8_0": { ctxSize: 9 } } },
    {
      ...toInput(base),
      models: [
        { id: "acme/a:Q8_0", ctxSize: 1, source: "./a.gguf" },
        { id: "acme/b:Q8_0", ctxSize: 9 },
      ],
    },
  ],
  ["null removes a model", { models: { "acme/a:Q8_0": null } }, { ...toInput(base), models: ["acme/b:Q8_0"] }],
  ["null removes the whole list", { models: null }, { version: 1, prune: false }],
  ["a list replaces the list", { models: ["acme/c:Q8_0"] }, { ...toInput(base), models: ["acme/c:Q8_0"] }],
  [
    "null removes a field",
    { models: { "acme/a:Q8_0": { ctxSize: null, source: null } } },
    { ...toInput(base), models: ["acme/a:Q8_0", "acme/b:Q8_0"] },
  ],
];

for (const [why, patch, input] of patches)
  test(`patch: ${why}`, () => assert.deepEqual(patchInput(base, patch), input));

const nonsense: readonly { readonly [key: string]: Json }[] = [
  { models: 5 },
  { models: "acme/a:Q8_0" },
  { models: { "acme/a:Q8_0": "x" } },
  { models: { "acme/a:Q8_0": [1] } },
  { models: { "no id": {} } },
  { version: 2 },
];

for (const patch of nonsense) {
  test(`patch: ${JSON.stringify(patch)} is found wrong, and said where`, () => {
    const validation = validateDocument(patchInput(base, patch));
    assert.ok(!validation.ok && validation.problems.length > 0);
  });
}

function valueAt(value: Json | undefined, path: readonly string[]): Json | undefined {
  return path.reduce<Json | undefined>(
    (at, key) =>
      typeof at === "object" && at !== null && !Array.isArray(at) && Object.hasOwn(at, key)
        ? (at as { [key: string]: Json })[key]
        : undefined,
    value,
  );
}

/** Another's keys may stand beside: the file's author did not speak of them. */
function contains(whole: Json, part: Json): boolean {
  if (typeof part !== "object" || part === null || Array.isArray(part)) return equalJson(whole, part);
  return Object.entries(part).every(([key, value]) => {
    const there = valueAt(whole, [key]);
    return there !== undefined && contains(there, value);
  });
}

function overlaps(a: readonly string[], b: readonly string[]): boolean {
  const length = Math.min(a.length, b.length);
  return a.slice(0, length).every((key, index) => key === b[index]);
}

function patchOf(path: readonly string[], value: Json): Json {
  return path.reduceRight<Json>((inner, key) => ({ [key]: inner }), value);
}
