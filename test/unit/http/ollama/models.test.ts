// The elements of /api/tags and /api/ps against the shapes that Ollama's clients read.

import assert from "node:assert/strict";
import { test } from "node:test";
import { psEntry, type ShownModel, tagEntry } from "../../../../src/http/ollama/wire/model-records.ts";
import { fileDetails, shown } from "../../../support/shown-model.ts";

const id = "acme/alpha-GGUF:Q4_K_M";

const full: ShownModel = shown(
  {
    bytes: 4683073184,
    modifiedAt: Date.UTC(2026, 1, 3, 4, 5, 6, 7),
    architecture: "llama",
  },
  {
    digest: "2bada8a7450677000f678be90653b85d364de7db25eb5ea54136ada5f3933730",
    details: fileDetails,
    contextLength: 8192,
  },
);

const bare: ShownModel = shown({ id: "acme/b:x", tag: "" });

const details = {
  parent_model: "",
  format: "gguf",
  family: "llama",
  families: ["llama"],
  parameter_size: "7.6B",
  quantization_level: "Q4_K_M",
  context_length: 8192,
};

const bareDetails = {
  parent_model: "",
  format: "gguf",
  family: "",
  families: null,
  parameter_size: "",
  quantization_level: "",
};

test("an element of /api/tags has every key, known or not", () => {
  assert.deepEqual(tagEntry(full, id), {
    name: "acme/alpha-GGUF:Q4_K_M",
    model: "acme/alpha-GGUF:Q4_K_M",
    modified_at: "2026-02-03T04:05:06.007Z",
    size: 4683073184,
    digest: "2bada8a7450677000f678be90653b85d364de7db25eb5ea54136ada5f3933730",
    details,
    capabilities: ["completion", "insert"],
  });
  assert.deepEqual(tagEntry(bare, "acme/b:x"), {
    name: "acme/b:x",
    model: "acme/b:x",
    modified_at: "1970-01-01T00:00:00.000Z",
    size: 1,
    digest: "00",
    details: bareDetails,
  });
});

test("an element of /api/ps says when the model goes and what context it has", () => {
  assert.deepEqual(psEntry(full, Date.UTC(2026, 1, 3, 4, 10, 6, 7)), {
    name: "acme/alpha-GGUF:Q4_K_M",
    model: "acme/alpha-GGUF:Q4_K_M",
    size: 4683073184,
    digest: "2bada8a7450677000f678be90653b85d364de7db25eb5ea54136ada5f3933730",
    details,
    expires_at: "2026-02-03T04:10:06.007Z",
    size_vram: 0,
    context_length: 8192,
  });
});

test("a model that stays for ever expires more than a century from now", () => {
  const expires = Date.parse(String(psEntry(bare, null)["expires_at"]));
  assert.ok(expires > Date.now() + 100 * 366 * 86_400_000);
});
