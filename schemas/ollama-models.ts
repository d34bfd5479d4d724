// Answers about models in the family wire-compatible with Ollama's API.

const detailsSchema = {
  title: "NativeDetails",
  type: "object",
  required: ["format", "family", "parameter_size", "quantization_level"],
  properties: {
    parent_model: { type: "string" },
    format: { type: "string", examples: ["gguf"] },
    family: { type: "string" },
    families: { type: ["array", "null"], items: { type: "string" } },
    parameter_size: { type: "string", examples: ["7.6B"] },
    quantization_level: { type: "string", examples: ["Q4_K_M"] },
    context_length: { type: "integer" },
  },
} as const;

const entryProperties = {
  name: { type: "string" },
  model: { type: "string" },
  size: { type: "integer", description: "Bytes." },
  digest: { type: "string", description: "SHA-256 in hex." },
  details: detailsSchema,
} as const;

const entryRequired = ["name", "model", "size", "digest", "details"] as const;

export const nativeTagsSchema = {
  title: "NativeTags",
  type: "object",
  required: ["models"],
  properties: {
    models: {
      type: "array",
      items: {
        type: "object",
        required: [...entryRequired, "modified_at"],
        properties: {
          ...entryProperties,
          modified_at: { type: "string", description: "RFC 3339." },
          capabilities: { type: "array", items: { type: "string" } },
        },
      },
    },
  },
  examples: [{ models: [] }],
} as const;

export const nativePsSchema = {
  title: "NativePs",
  description: "The loaded models.",
  type: "object",
  required: ["models"],
  properties: {
    models: {
      type: "array",
      items: {
        type: "object",
        required: [...entryRequired, "expires_at", "size_vram"],
        properties: {
          ...entryProperties,
          expires_at: { type: "string", description: "RFC 3339: when it is unloaded." },
          size_vram: { type: "integer" },
          context_length: { type: "integer" },
        },
      },
    },
  },
  examples: [{ models: [] }],
} as const;

export const nativeShownSchema = {
  title: "NativeShown",
  type: "object",
  required: ["details", "model_info", "capabilities"],
  properties: {
    license: { type: "string" },
    modelfile: { type: "string" },
    parameters: { type: "string", description: "One `name  value` per line." },
    template: { type: "string" },
    details: detailsSchema,
    model_info: {
      type: "object",
      description: "The file's metadata: `general.architecture`, `llama.context_length`, …",
    },
    capabilities: { type: "array", items: { type: "string" }, examples: [["completion", "tools"]] },
    modified_at: { type: "string", description: "RFC 3339." },
    system: { type: "string" },
    projector_info: { type: "object" },
  },
  examples: [
    {
      details: { format: "gguf", family: "llama", parameter_size: "7.6B", quantization_level: "Q4_K_M" },
      model_info: { "general.architecture": "llama", "llama.context_length": 8192 },
      capabilities: ["completion", "tools"],
    },
  ],
} as const;

export const nativeVersionSchema = {
  title: "NativeVersion",
  type: "object",
  required: ["version"],
  properties: { version: { type: "string", description: "Of Ollama's API as it is spoken here." } },
  examples: [{ version: "0.20.0" }],
} as const;
