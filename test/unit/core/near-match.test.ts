// The known word that a misspelt one was meant to be.
import assert from "node:assert/strict";
import { test } from "node:test";
import { modelSchema } from "../../../schemas/document.ts";
import { presetOptions } from "../../../schemas/preset-options.ts";
import { nearMatch } from "../../../src/core/near-match.ts";

const keys = Object.keys(modelSchema.properties);

for (const [word, match] of [
  ["ctxsize", "ctxSize"],
  ["ctx-size", "ctxSize"],
  ["CTX_SIZE", "ctxSize"],
  ["ctxSzie", "ctxSize"],
  ["ctxSiz", "ctxSize"],
  ["contextsize", null],
  ["pined", "pinned"],
  ["chattemplates", "chatTemplate"],
  ["loar", "lora"],
  ["idd", null],
  ["ctx", null],
  ["", null],
  ["colour", null],
  ["__proto__", null],
] as const)
  test(`${JSON.stringify(word)}: ${match}`, () => assert.equal(nearMatch(word, keys), match));

test("the nearest of several, and each option for itself", () => {
  assert.equal(nearMatch("n-gpu-layer", presetOptions.keys()), "n-gpu-layers");
  assert.equal(nearMatch("top_k", presetOptions.keys()), "top-k");
  const bare = (word: string | null): string | undefined => word?.replaceAll("-", "");
  for (const option of presetOptions.keys()) assert.equal(bare(nearMatch(option, presetOptions.keys())), bare(option));
});

test("a long word costs nothing", () => {
  const word = "a".repeat(250_000);
  assert.equal(nearMatch(word, [word]), null);
});
