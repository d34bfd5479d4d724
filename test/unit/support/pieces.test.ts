// Cutting texts into pieces of which none stands twice: for any text that has such a cut, it joins up to the text again.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { cutIntoPieces } from "../../support/scripted/pieces.ts";

test("a text without repeats is cut after its words", () => {
  assert.deepEqual(cutIntoPieces("Hello from alpha, at last.", new Set()), [
    "Hello",
    " from",
    " alpha,",
    " at",
    " last.",
  ]);
});

test("a word said twice is joined with its neighbour", () => {
  const pieces = cutIntoPieces("again and again and again and done", new Set());
  assert.equal(new Set(pieces).size, pieces.length);
  assert.equal(pieces.join(""), "again and again and again and done");
});

test("the same text many times over is cut another way each time", () => {
  const taken = new Set<string>();
  const all = Array.from({ length: 4 }, () => cutIntoPieces("Hello there", taken));
  for (const pieces of all) assert.equal(pieces.join(""), "Hello there");
  assert.equal(new Set(all.flat()).size, all.flat().length);
});

test("texts of few words in many repeats are cut as well", () => {
  const taken = new Set<string>();
  const words = fc.array(fc.constantFrom("tick", "tock", "one", "two", "Grüße", "🙂🙂"), {
    minLength: 2,
    maxLength: 60,
  });
  fc.assert(
    fc.property(words, (list) => {
      const text = list.join(" ");
      taken.clear();
      const pieces = cutIntoPieces(text, taken);
      assert.equal(pieces.join(""), text);
      assert.equal(taken.size, pieces.length);
    }),
  );
});

test("where there is no such cut the error says so, soon, and takes nothing", () => {
  const taken = new Set(["a", "b", "ab"]);
  assert.throws(() => cutIntoPieces("ab", taken), /no way to cut.*"ab"/);
  assert.deepEqual([...taken], ["a", "b", "ab"]);
  const one = new Set(Array.from({ length: 500 }, (_, index) => "x".repeat(index + 1)));
  assert.throws(() => cutIntoPieces("x".repeat(500), one), /cut into pieces/);
});
