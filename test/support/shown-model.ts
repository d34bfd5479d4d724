// A model as Ollama's clients are shown it, and what its file says.
import type { GgufDetails } from "../../src/core/gguf-facts.ts";
import { factsOf, type ShownModel } from "../../src/http/ollama/wire/model-records.ts";
import { cachedModel } from "./cached-model.ts";

export const fileDetails: GgufDetails = {
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

export function shown(facts: Partial<ShownModel["model"]>, more: Partial<Omit<ShownModel, "model">> = {}): ShownModel {
  const model = cachedModel("acme/alpha-GGUF:Q4_K_M", facts);
  const own = more.details ? factsOf(more.details, false) : null;
  return { model, contextLength: null, facts: own, details: null, digest: "00", memory: null, ...more };
}
