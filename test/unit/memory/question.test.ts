// What llama-fit-params is asked: the settings that memory depends on, by the names that it takes.
import assert from "node:assert/strict";
import { test } from "node:test";
import { questionOf } from "../../../src/memory/question.ts";
import { cachedModel } from "../../support/cached-model.ts";

const model = cachedModel("acme/a:Q8_0", { files: ["/cache/a.gguf"], blobs: ["f00d"] });

function runOf(values: Readonly<Record<string, string>>, facts = {}): string {
  const { runs } = questionOf({ ...model, ...facts }, new Map(Object.entries(values)));
  return runs.map((args) => args.join(" ")).join(" | ");
}

test("slots that are not set share one cache, which is that of a single slot", () => {
  assert.equal(runOf({}), "--model /cache/a.gguf --parallel 1");
  assert.equal(runOf({ parallel: "3" }), "--model /cache/a.gguf --parallel 3");
  assert.equal(runOf({ parallel: "3", "kv-unified": "true" }), "--model /cache/a.gguf --parallel 1");
  assert.equal(runOf({ "kv-unified": "off" }), "--model /cache/a.gguf --parallel 4");
});

test("settings that change no memory are left out", () => {
  const settings = { "ctx-size": "4096", "cache-type-k": "q8_0", temp: "0.5", offline: "true", "hf-repo": "acme/a" };
  assert.equal(runOf(settings), "--model /cache/a.gguf --cache-type-k q8_0 --ctx-size 4096 --parallel 1");
  assert.equal(
    runOf({ "swa-full": "true", repack: "false" }),
    "--model /cache/a.gguf --parallel 1 --swa-full --no-repack",
  );
  assert.equal(
    runOf({ "swa-full": "false", "gpu-layers": "9" }),
    "--model /cache/a.gguf --n-gpu-layers 9 --parallel 1",
  );
});

test("a draft model is asked about by itself, with the context and batches of its model and its own types, by any name", () => {
  const settings = {
    "ctx-size": "4096",
    "cache-type-k": "q4_0",
    "model-draft": "/cache/d.gguf",
    "cache-type-k-draft": "q8_0",
  };
  assert.equal(
    runOf(settings),
    "--model /cache/a.gguf --cache-type-k q4_0 --ctx-size 4096 --parallel 1 | " +
      "--model /cache/d.gguf --cache-type-k q8_0 --ctx-size 4096 --parallel 1",
  );
  const others = {
    "spec-draft-model": "d",
    parallel: "4",
    "ubatch-size": "32",
    "flash-attn": "off",
    "spec-draft-type-k": "q8_0",
  };
  assert.match(runOf(others), /--model d --cache-type-k q8_0 --flash-attn off --parallel 1 --ubatch-size 32$/);
  assert.match(runOf({ ...others, "spec-draft-n-ubatch": "16" }), /--ubatch-size 32 .*--ubatch-size 16$/);
});

test("projector and adapters are files that are loaded whole", () => {
  const filesOf = (values: Readonly<Record<string, string>>, projector: string | null) =>
    questionOf({ ...model, projector }, new Map(Object.entries(values))).files;
  assert.deepEqual(filesOf({}, "/cache/p.gguf"), ["/cache/p.gguf"]);
  assert.deepEqual(filesOf({ mmproj: "/own.gguf" }, "/cache/p.gguf"), ["/own.gguf"]);
  assert.deepEqual(filesOf({ "lora-scaled": "/x.gguf:1,/y.gguf:0.5" }, null), ["/x.gguf", "/y.gguf"]);
});

test("the key follows the content of the files and the settings, not the place of the files", () => {
  const keyOf = (facts: object, values: Readonly<Record<string, string>> = {}) =>
    questionOf({ ...model, ...facts }, new Map(Object.entries(values))).key;
  assert.equal(keyOf({}), keyOf({ files: ["/elsewhere/a.gguf"], modifiedAt: 7 }));
  assert.equal(keyOf({}, { temp: "0.5" }), keyOf({}));
  assert.notEqual(keyOf({}), keyOf({ blobs: ["beef"] }));
  assert.notEqual(keyOf({}), keyOf({}, { "ctx-size": "4096" }));
  assert.notEqual(keyOf({}), keyOf({}, { tags: "files-1" }));
  assert.notEqual(keyOf({ blobs: [null], modifiedAt: 1 }), keyOf({ blobs: [null], modifiedAt: 2 }));
});
