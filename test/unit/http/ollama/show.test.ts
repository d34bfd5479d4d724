// What /api/show says of a model, for clients that look for a context size, capabilities or a template that fills gaps.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { GgufDetails } from "../../../../src/core/gguf-facts.ts";
import { type ModelFacts, quantizationOf, showBody } from "../../../../src/http/ollama/wire/model-records.ts";

const model: ModelFacts = {
  id: "acme/alpha-GGUF:Q4_K_M",
  size: 1,
  modifiedAt: 0,
  digest: "00",
  family: "llama",
  parameterSize: "7.6B",
  quantization: "Q4_K_M",
  contextLength: 4096,
};

const details: GgufDetails = {
  architecture: "llama",
  values: new Map<string, string | number | boolean | null>([
    ["general.architecture", "llama"],
    ["llama.context_length", 8192],
    ["llama.embedding_length", 64],
    ["tokenizer.ggml.model", "gpt2"],
    ["tokenizer.ggml.tokens", null],
  ]),
  template: "{{ messages }}",
  templates: new Map(),
  parameterCount: 7_600_000_000,
  hasFimTokens: true,
  pooling: null,
  contextLength: 8192,
  fileType: null,
  embeddingLength: 64,
  name: "Alpha",
  basename: "Alpha",
  sizeLabel: "7B",
  license: "apache-2.0",
};

const facts = { model, repo: "acme/alpha-GGUF", details, projector: null, nCtxTrain: 8192 };

test("all that a model's file says", () => {
  const body = showBody({ ...facts, capabilities: ["completion", "insert"] });
  assert.deepEqual(body["model_info"], {
    "general.architecture": "llama",
    "general.basename": "Alpha",
    "general.parameter_count": 7_600_000_000,
    // The one in force; what it was trained for stands beside it.
    "llama.context_length": 4096,
    "llama.embedding_length": 64,
    "tokenizer.ggml.model": "gpt2",
    "tokenizer.ggml.tokens": null,
  });
  assert.deepEqual(
    [
      body["n_ctx_train"],
      body["license"],
      body["capabilities"],
      body["modified_at"],
      body["system"],
      body["projector_info"],
    ],
    [8192, "apache-2.0", ["completion", "insert"], "1970-01-01T00:00:00.000Z", "", undefined],
  );
  // As an editor reads it: a name, white space, a value.
  const [line = ""] = String(body["parameters"]).split("\n");
  assert.deepEqual(line.split(/\s+/), ["num_ctx", "4096"]);
  assert.match(String(body["template"]), /^\{\{ messages \}\}\n.*\.Suffix/);
  assert.match(String(body["modelfile"]), /^FROM acme\/alpha-GGUF:Q4_K_M$/m);
});

test("a file that cannot be read, and one without tokens for gaps", () => {
  const unread = { ...model, contextLength: 512 };
  const body = showBody({ ...facts, model: unread, details: null, nCtxTrain: null, capabilities: [] });
  assert.deepEqual(body["model_info"], {
    "general.architecture": "llama",
    "general.basename": "alpha",
    "llama.context_length": 512,
  });
  assert.equal(body["template"], "");
  const plain = showBody({
    ...facts,
    details: { ...details, hasFimTokens: false },
    projector: details,
    capabilities: [],
  });
  assert.equal(plain["template"], "{{ messages }}");
  assert.ok(plain["projector_info"]);
});

test("the quantisation is the tag where that is one, else what the file says", () => {
  const table: readonly (readonly [string, number | null, string])[] = [
    ["Q4_K_M", 7, "Q4_K_M"],
    ["IQ3_XXS", null, "IQ3_XXS"],
    ["bf16", null, "bf16"],
    ["model", 15, "Q4_K_M"],
    ["model", 7, "Q8_0"],
    ["model", 32, "BF16"],
    ["model", 5, "model"],
    ["model", 99, "model"],
    ["model", null, "model"],
  ];
  for (const [tag, fileType, quantization] of table) assert.equal(quantizationOf(tag, fileType), quantization);
});
