// A text that is the same for equal values.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { canonicalText, equalJson, type Json, type JsonObject } from "../../../src/core/json.ts";

function reversed(value: Json): Json {
  if (Array.isArray(value)) return value.map((each) => reversed(each as Json));
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value as JsonObject).toReversed();
  return Object.fromEntries(entries.map(([key, each]) => [key, reversed(each)]));
}

test("equal values have one text, in whatever order their keys came; others have another", () => {
  const values = fc.jsonValue({ noUnicodeString: false }) as fc.Arbitrary<Json>;
  fc.assert(
    fc.property(values, values, (a, b) => {
      assert.equal(canonicalText(a), canonicalText(reversed(a)));
      assert.equal(
        canonicalText(a) === canonicalText(b),
        equalJson(JSON.parse(JSON.stringify(a)) as Json, JSON.parse(JSON.stringify(b)) as Json),
      );
    }),
    { seed: 19, numRuns: 300 },
  );
});
