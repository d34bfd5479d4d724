// Which files a tag means.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { type HubFile, selectFiles, tagsOf } from "../../../../src/cache/layout/select.ts";
import { GatewayError } from "../../../../src/core/errors.ts";

function tree(...paths: string[]): HubFile[] {
  return paths.map((path) => ({ path, size: 1, oid: "0".repeat(40), sha256: "0".repeat(64) }));
}

function pick(tag: string, paths: string[], repo = "acme/foo-GGUF"): string[] {
  const { model, projector } = selectFiles(repo, tag, tree(...paths));
  return [...model, ...(projector ? [projector] : [])].map((file) => file.path);
}

function refusal(tag: string, paths: string[]): GatewayError {
  try {
    pick(tag, paths);
  } catch (error) {
    if (error instanceof GatewayError) return error;
    throw error;
  }
  return assert.fail(`${tag} was found`);
}

describe("hub file selection", () => {
  it("takes a short tag, a router tag, a file name, ignoring case, in subfolders too", () => {
    const paths = [
      "README.md",
      "foo-Q4_K_M.gguf",
      "foo-Q6_K.gguf",
      "foo.q8_0.gguf",
      "big/foo-BF16.gguf",
      "foo-IQ4_0.gguf",
    ];
    assert.deepEqual(pick("Q4_K_M", paths), ["foo-Q4_K_M.gguf"]);
    assert.deepEqual(pick("q4_k_m", paths), ["foo-Q4_K_M.gguf"]);
    assert.deepEqual(pick("Q6_K", paths), ["foo-Q6_K.gguf"]);
    assert.deepEqual(pick("Q8_0", paths), ["foo.q8_0.gguf"]);
    assert.deepEqual(pick("BF16", paths), ["big/foo-BF16.gguf"]);
    assert.deepEqual(pick("foo-Q6_K", paths), ["foo-Q6_K.gguf"]);
    assert.deepEqual(pick("foo-Q6_K.gguf", paths), ["foo-Q6_K.gguf"]);
    assert.deepEqual(pick("FOO-q6_k", paths), ["foo-Q6_K.gguf"]);
  });

  it("takes a tag of several words that ends the name", () => {
    assert.deepEqual(pick("UD-Q4_K_XL", ["foo-UD-Q4_K_XL.gguf", "foo-Q4_K_XL.gguf"]), ["foo-UD-Q4_K_XL.gguf"]);
  });

  it("takes all shards in order, by short tag and by the name of one of them", () => {
    const paths = [3, 1, 2].map((index) => `Q8_0/foo-Q8_0-0000${index}-of-00003.gguf`);
    const sorted = paths.toSorted();
    assert.deepEqual(pick("Q8_0", paths), sorted);
    assert.deepEqual(pick("foo-Q8_0", paths), sorted);
    assert.deepEqual(pick("foo-Q8_0-00002-of-00003", paths), sorted);
  });

  it("refuses a shard set that is not whole, and takes a whole one instead where there is one", () => {
    const parts = ["foo-Q8_0-00001-of-00003.gguf", "foo-Q8_0-00003-of-00003.gguf"];
    assert.equal(refusal("Q8_0", parts).code, "quant_not_found");
    assert.match(refusal("Q8_0", parts).message, /lacks shard 2 of 3/);
    assert.deepEqual(pick("Q8_0", [...parts, "foo-Q8_0.gguf"]), ["foo-Q8_0.gguf"]);
  });

  it("takes one projector: F16, then BF16, then the first by name; near the model first", () => {
    const model = "foo-Q8_0.gguf";
    assert.deepEqual(pick("Q8_0", [model, "mmproj-F32.gguf", "mmproj-BF16.gguf", "mmproj-F16.gguf"]), [
      model,
      "mmproj-F16.gguf",
    ]);
    assert.deepEqual(pick("Q8_0", [model, "mmproj-F32.gguf", "mmproj-foo-bf16.gguf"]), [model, "mmproj-foo-bf16.gguf"]);
    assert.deepEqual(pick("Q8_0", [model, "b-mmproj.gguf", "a-mmproj.gguf"]), [model, "a-mmproj.gguf"]);
    assert.deepEqual(pick("Q8_0", ["a/foo-Q8_0.gguf", "a/mmproj.gguf", "b/mmproj-F16.gguf"]), [
      "a/foo-Q8_0.gguf",
      "a/mmproj.gguf",
    ]);
  });

  it("never takes an auxiliary file for the model", () => {
    assert.equal(refusal("F16", ["mmproj-F16.gguf", "foo-Q8_0.gguf"]).code, "quant_not_found");
    assert.deepEqual(pick("Q8_0", ["mtp-foo-Q8_0.gguf", "foo-Q8_0.gguf", "imatrix.gguf"]), ["foo-Q8_0.gguf"]);
  });

  it("prefers the plain name among several of one tag", () => {
    assert.deepEqual(pick("Q4_K_M", ["foo-UD-Q4_K_M.gguf", "foo-Q4_K_M.gguf"]), ["foo-Q4_K_M.gguf"]);
    assert.deepEqual(pick("Q4_K_M", ["bar-UD-Q4_K_M.gguf", "bar-Q4_K_M.gguf"]), ["bar-Q4_K_M.gguf"]);
    assert.deepEqual(pick("Q4_K_M", ["bar-Q4_K_M.gguf", "foo-Q4_K_M.gguf"]), ["foo-Q4_K_M.gguf"]);
    assert.deepEqual(pick("Q8_0", ["old/foo-Q8_0.gguf", "foo-Q8_0.gguf"]), ["foo-Q8_0.gguf"]);
  });

  it("lists the candidates of an ambiguous tag", () => {
    const error = refusal("Q4_K_M", ["two-Q4_K_M.gguf", "one-Q4_K_M.gguf"]);
    assert.equal(error.code, "quant_ambiguous");
    assert.match(error.message, /one-Q4_K_M, two-Q4_K_M/);
    assert.equal(refusal("Q8_0", ["a/foo-Q8_0.gguf", "b/foo-Q8_0.gguf"]).code, "quant_ambiguous");
  });

  it("lists the tags there are when there is none such", () => {
    const error = refusal("Q2_K", [
      "foo-Q4_K_M.gguf",
      "foo-UD-Q4_K_M.gguf",
      "foo-Q6_K.gguf",
      "plain.gguf",
      "mmproj-F16.gguf",
    ]);
    assert.equal(error.code, "quant_not_found");
    assert.match(error.message, /It has: Q4_K_M, Q6_K, plain\./);
    assert.match(refusal("Q2_K", ["model.safetensors"]).message, /no GGUF file/);
    assert.deepEqual(tagsOf(tree("foo-Q8_0-00001-of-00002.gguf", "foo-Q8_0-00002-of-00002.gguf")), ["Q8_0"]);
  });
});
