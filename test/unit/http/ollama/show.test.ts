// What /api/show says of a model, for clients that look for a context size, capabilities or a template that fills gaps.

import assert from "node:assert/strict";
import { test } from "node:test";
import { quantizationOf, showBody } from "../../../../src/http/ollama/wire/model-records.ts";
import { fileDetails, shown } from "../../../support/shown-model.ts";

const facts = { architecture: "llama", nCtxTrain: 8192 };

test("all that a model's file says", () => {
  const body = showBody(shown(facts, { details: fileDetails, contextLength: 4096 }), null);
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

test("a variant is shown with what it sets, and whose it is", () => {
  const variant = { name: "terse", set: { temperature: 0.5, stop: ["a b", "c"], chat_template_kwargs: { x: true } } };
  const body = showBody(shown(facts, { details: fileDetails, contextLength: 4096 }), null, variant);
  const lines = ["num_ctx 4096", "temperature 0.5", 'stop "a b"', 'stop "c"', 'chat_template_kwargs {"x":true}'];
  assert.deepEqual(String(body["parameters"]).replaceAll(/ {2,}/g, " ").split("\n"), lines);
  assert.equal((body["details"] as { parent_model: string }).parent_model, "acme/alpha-GGUF:Q4_K_M");
  for (const line of lines) assert.ok(String(body["modelfile"]).includes(`\nPARAMETER ${line}\n`), line);
});

test("a file that cannot be read, and one without tokens for gaps", () => {
  const body = showBody(shown({ ...facts, nCtxTrain: null }, { contextLength: 512 }), null);
  assert.deepEqual(body["capabilities"], ["completion"]);
  assert.deepEqual(body["model_info"], {
    "general.architecture": "llama",
    "general.basename": "alpha",
    "llama.context_length": 512,
  });
  assert.equal(body["template"], "");
  const plain = showBody(shown(facts, { details: { ...fileDetails, hasFimTokens: false } }), fileDetails);
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
