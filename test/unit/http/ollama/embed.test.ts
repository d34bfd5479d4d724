// Ollama's embedding requests, and vectors and texts cut to size.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { nativeEmbedSchema } from "../../../../schemas/ollama.ts";
import { cutTokens, cutVector, textsOf } from "../../../../src/http/ollama/embedding.ts";
import { checked, refusalOf } from "../../../support/refusals.ts";

test("texts in all their forms", () => {
  for (const [input, texts] of [
    ["a", ["a"]],
    [
      ["a", "b"],
      ["a", "b"],
    ],
    ["", []],
    [[], []],
    [null, []],
    [undefined, []],
  ] as const) {
    const body = { model: "m", ...(input !== undefined && { input }) };
    assert.deepEqual(textsOf(checked(nativeEmbedSchema, body).input), texts);
  }
});

test("a refusal names the field", () => {
  const table: readonly (readonly [object, string])[] = [
    [{ input: "a" }, "model is missing"],
    [{ model: "m", input: 1 }, "input must be a string or an array"],
    [{ model: "m", input: ["a", 1] }, "input[1] must be a string"],
    [{ model: "m", dimensions: -1 }, "dimensions must be >= 0"],
    [{ model: "m", dimensions: 1.5 }, "dimensions must be an integer"],
    [{ model: "m", truncate: "no" }, "truncate must be a boolean"],
    [{ model: "m", keep_alive: [] }, "keep_alive must be a number or a string"],
    [{ model: "m", options: { num_ctx: 0 } }, "options.num_ctx must be >= 1"],
  ];
  for (const [body, message] of table)
    assert.equal(
      refusalOf(() => checked(nativeEmbedSchema, body)),
      message,
    );
});

test("a vector that is cut has length 1 again", () => {
  const vector = [0.6, 0, 0.8];
  assert.equal(cutVector(vector, 0), vector);
  assert.equal(cutVector(vector, 3), vector);
  assert.deepEqual(cutVector(vector, 2), [1, 0]);
  assert.deepEqual(cutVector([0, 1], 1), [0]);
});

test("a text that is cut keeps what its tokenizer closes it with", () => {
  assert.deepEqual(cutTokens([101, 1, 2, 3, 102], [101, 102], 4), [101, 1, 2, 102]);
  assert.deepEqual(cutTokens([1, 5, 6, 7], [1], 3), [1, 5, 6]);
  assert.deepEqual(cutTokens([5, 6, 7, 2], [2], 3), [5, 6, 2]);
  assert.deepEqual(cutTokens([5, 6, 7], [], 2), [5, 6]);
  fc.assert(
    fc.property(
      fc.array(fc.nat(9)),
      fc.array(fc.nat(9), { maxLength: 2 }),
      fc.integer({ min: 1, max: 9 }),
      (a, b, n) => {
        assert.equal(cutTokens(a, b, n).length, Math.min(a.length, n));
      },
    ),
  );
});
