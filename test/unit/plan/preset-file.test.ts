// The preset file read: sections, entries, and the size that is in force.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parsePreset, presetCtxSize, readEntry, sectionsInForce } from "../../../src/plan/preset-file.ts";

const spellings: readonly (readonly [a: string, b: string, same: boolean])[] = [
  ["acme/a:Q8_0", "acme/a:q8_0", true],
  ["acme/a:foo-UD-Q4_K_XL", "acme/a:Q4_K_XL", true],
  ["acme/a:1.0", "acme/a:0", true],
  ["acme/a:tiny", "acme/a:TINY", true],
  ["acme/a:foo_bar", "acme/a:BAR", false],
  ["Acme/a:Q8_0", "acme/a:Q8_0", false],
  ["acme/a-b:x", "acme/a:x", false],
  ["*", "*", true],
];

for (const [a, b, same] of spellings)
  test(`${a} and ${b} are ${same ? "one section" : "two sections"}`, () =>
    assert.equal(sectionsInForce(parsePreset(`[${a}]\n[${b}]\n`)).size, same ? 1 : 2));

const entries: readonly (readonly [line: string, entry: { key: string; value: string } | null])[] = [
  ["ctx-size = 4096", { key: "ctx-size", value: "4096" }],
  ["c=1", { key: "ctx-size", value: "1" }],
  ["LLAMA_ARG_CTX_SIZE = 2 ; two", { key: "ctx-size", value: "2" }],
  ["LLAMA_ARG_N_PREDICT = 3", { key: "n-predict", value: "3" }],
  ["hfr = a/b:c", { key: "hf-repo", value: "a/b:c" }],
  ["flash-attn = on # on", { key: "flash-attn", value: "on" }],
  ["offline = true", { key: "offline", value: "true" }],
  ["chat-template =", { key: "chat-template", value: "" }],
  ["; ctx-size = 4096", null],
  ["  ctx-size = 4096", null],
  ["[ctx-size]", null],
  ["", null],
];

for (const [text, entry] of entries) test(`read: ${text || "(empty)"}`, () => assert.deepEqual(readEntry(text), entry));

const sizes: readonly (readonly [text: string, size: number | null])[] = [
  ["[*]\nctx-size = 10\n", 10],
  ["[*]\nctx-size = 10\n[a/b:Q]\nc = 20\n", 20],
  ["[a/b:Q]\nctx-size = 20\n[a/b:Q]\nthreads = 1\n", null],
  ["[a/b:Q]\nctx-size = 20\nctx-size = 30\n", 30],
  ["[a/b:Q]\nctx-size = abc\n", null],
  ["[a/b:Q]\nctx-size = 0\n", null],
  ["ctx-size = 10\n", null],
];

for (const [text, size] of sizes)
  test(`size in force: ${JSON.stringify(text)}`, () => assert.equal(presetCtxSize(parsePreset(text), "a/b:Q"), size));
