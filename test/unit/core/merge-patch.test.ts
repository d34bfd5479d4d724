// JSON merge patch: the examples of RFC 7396, and what holds for any two trees.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { equalJson, type Json } from "../../../src/core/json.ts";
import { applyMergePatch, listChanges } from "../../../src/core/merge-patch.ts";

const runs = { seed: 7396, numRuns: 500 };

/** Appendix A of RFC 7396. */
const examples: readonly (readonly [target: Json, patch: Json, result: Json])[] = [
  [{ a: "b" }, { a: "c" }, { a: "c" }],
  [{ a: "b" }, { b: "c" }, { a: "b", b: "c" }],
  [{ a: "b" }, { a: null }, {}],
  [{ a: "b", b: "c" }, { a: null }, { b: "c" }],
  [{ a: ["b"] }, { a: "c" }, { a: "c" }],
  [{ a: "c" }, { a: ["b"] }, { a: ["b"] }],
  [{ a: { b: "c" } }, { a: { b: "d", c: null } }, { a: { b: "d" } }],
  [{ a: [{ b: "c" }] }, { a: [1] }, { a: [1] }],
  [
    ["a", "b"],
    ["c", "d"],
    ["c", "d"],
  ],
  [{ a: "b" }, ["c"], ["c"]],
  [{ a: "foo" }, null, null],
  [{ a: "foo" }, "bar", "bar"],
  [{ e: null }, { a: 1 }, { e: null, a: 1 }],
  [[1, 2], { a: "b", c: null }, { a: "b" }],
  [{}, { a: { bb: { ccc: null } } }, { a: { bb: {} } }],
];

for (const [target, patch, result] of examples) {
  test(`${JSON.stringify(target)} with ${JSON.stringify(patch)}`, () =>
    assert.deepEqual(applyMergePatch(target, patch), result));
}

const json = fc.jsonValue({ maxDepth: 3 }) as fc.Arbitrary<Json>;

test("neither argument is changed", () => {
  fc.assert(
    fc.property(json, json, (target, patch) => {
      const before = JSON.stringify([target, patch]);
      applyMergePatch(target, patch);
      assert.equal(JSON.stringify([target, patch]), before);
    }),
    runs,
  );
});

test("equality is that of the values, whatever the order of keys", () => {
  fc.assert(
    fc.property(json, json, (a, b) => {
      assert.ok(equalJson(a, JSON.parse(JSON.stringify(a)) as Json));
      assert.equal(equalJson(a, b), equalJson(b, a));
      assert.equal(equalJson(a, b), listChanges(a, b).length === 0);
    }),
    runs,
  );
  assert.ok(equalJson({ a: 1, b: [2] }, { b: [2], a: 1 }));
  assert.ok(!equalJson({ a: 1 }, { a: 1, b: 2 }));
  assert.ok(!equalJson([1], { 0: 1 }));
  assert.ok(!equalJson({ constructor: 1 }, {}));
});

test("changes are listed leaf by leaf, arrays whole", () => {
  assert.deepEqual(listChanges({ a: { b: 1, c: [1] }, d: 1 }, { a: { b: 2, c: [1, 2] }, e: null }), [
    { path: ["a", "b"], before: 1, after: 2 },
    { path: ["a", "c"], before: [1], after: [1, 2] },
    { path: ["d"], before: 1, after: undefined },
    { path: ["e"], before: undefined, after: null },
  ]);
});

test("a key named __proto__ is data", () => {
  const patch = JSON.parse('{"__proto__": {"polluted": 1}, "toString": 2}') as Json;
  const result = applyMergePatch({}, patch);
  assert.deepEqual(Object.keys(result as object), ["__proto__", "toString"]);
  assert.equal(Object.getPrototypeOf(result), Object.prototype);
  assert.equal(({} as Record<string, unknown>)["polluted"], undefined);
  assert.equal(listChanges({}, patch).length, 2);
});
