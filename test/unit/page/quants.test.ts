// What of a repository can be pulled, and what a text in the search means.
import assert from "node:assert/strict";
import { test } from "node:test";
import { kindOf, quantsOf } from "../../../src/page/quants.ts";

test("a row per model: shards together, no projector, nothing that lacks a shard, the smallest first", () => {
  const files = [
    { path: "m-Q8_0.gguf", size: 80 },
    { path: "big/m-F16-00001-of-00002.gguf", size: 100 },
    { path: "big/m-F16-00002-of-00002.gguf", size: 60 },
    { path: "m-Q2_K-00001-of-00002.gguf", size: 1 },
    { path: "mmproj-F16.gguf", size: 5 },
    { path: "m-Q4_K_M.gguf", size: 40 },
    { path: "m-UD-Q4_K_M.gguf", size: 41 },
  ];
  assert.deepEqual(
    quantsOf("acme/m-GGUF", files).map(({ id, bytes, files: count }) => [id, bytes, count]),
    [
      ["acme/m-GGUF:m-Q4_K_M", 40, 1],
      ["acme/m-GGUF:m-UD-Q4_K_M", 41, 1],
      ["acme/m-GGUF:Q8_0", 80, 1],
      ["acme/m-GGUF:m-F16", 160, 2],
    ],
  );
});

test("a text is an id, a repository, or to be searched for", () => {
  assert.deepEqual(["gemma", "acme/m-GGUF", "acme/m-GGUF:Q8_0", ""].map(kindOf), [
    "search",
    "repository",
    "model",
    "search",
  ]);
});
