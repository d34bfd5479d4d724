// The desired document as people write it. The source of its types, of the validator and of gateway.schema.json.
import type { FromSchema } from "json-schema-to-ts";
import { presetKeyPattern, presetOptions } from "./preset-options.ts";

/** `owner/name:tag` */
const modelIdSchema = {
  type: "string",
  pattern: "^[A-Za-z0-9][\\w.-]*/[A-Za-z0-9][\\w.-]*:[\\w+@][\\w.+@ -]*$",
  description: "OWNER/NAME:TAG, the tag being a quant (Q4_K_M) or a file's name without .gguf.",
  examples: ["ggml-org/gemma-3-270m-it-GGUF:Q8_0"],
} as const;

const ctxSizeSchema = {
  type: "integer",
  minimum: 1,
  maximum: 16_777_216,
  description: "Context size in tokens. The engine runs none below 256: less is raised to that.",
} as const;

const presetSchema = {
  type: "object",
  description: "Further llama-server options for this model, without leading dashes.",
  propertyNames: { pattern: presetKeyPattern },
  // For editors to complete. Which others may stand here depends on --preset-allow, so the program checks them.
  properties: Object.fromEntries([...presetOptions.keys()].map((key) => [key, {}])) as Record<never, object>,
  patternProperties: { "": { type: ["string", "number", "boolean"] } },
} as const;

/** Only gateway.yaml may set what names a file or another model's files. */
const fileSchema = { type: "string", minLength: 1, maxLength: 1000 } as const;

export const modelSchema = {
  type: "object",
  additionalProperties: false,
  required: ["id"],
  properties: {
    id: modelIdSchema,
    ctxSize: ctxSizeSchema,
    aliases: {
      type: "array",
      uniqueItems: true,
      maxItems: 100,
      items: {
        type: "string",
        maxLength: 200,
        pattern: "^[A-Za-z0-9_][A-Za-z0-9_./:+@-]*$",
        description: "A name: letters, digits and _ . / : + @ -",
      },
      description: "Further names by which clients may ask for this model.",
    },
    preset: presetSchema,
    chatTemplate: { ...fileSchema, description: "A Jinja file, in this file's folder or below." },
    lora: {
      type: "array",
      minItems: 1,
      maxItems: 32,
      items: {
        type: "object",
        additionalProperties: false,
        required: ["source"],
        properties: {
          source: { ...fileSchema, description: "A GGUF file, in this file's folder or below." },
          scale: { type: "number", description: "Default: 1." },
        },
      },
      description: "LoRA adapters to load with the model.",
    },
    draft: { ...modelIdSchema, description: "Another model of this document, for speculative decoding." },
    mmproj: { ...fileSchema, description: "A GGUF projector for images and audio, in this file's folder or below." },
    keep: { type: "boolean", description: "Never pruned, also after it has left this list." },
    pinned: {
      type: "boolean",
      description:
        "Once loaded it stays so: unloaded neither for another model nor for lack of use. It is not loaded by that.",
    },
    source: { type: "string", minLength: 1, description: "A local .gguf file, relative to this file's folder." },
    revision: {
      type: "string",
      maxLength: 255,
      pattern: "^[\\w][\\w./-]*$",
      description: "A branch, tag or commit of the repository.",
    },
  },
} as const;

export const rpcSchema = {
  type: "object",
  additionalProperties: false,
  properties: {
    mode: { enum: ["single", "rpc"], description: "single: this machine only; rpc: with the workers." },
    workers: {
      type: "array",
      uniqueItems: true,
      maxItems: 64,
      items: { type: "string", pattern: "^[A-Za-z0-9.-]+:[0-9]{1,5}$" },
      description: "HOST:PORT of each ggml-rpc-server. The protocol is neither authenticated nor encrypted.",
    },
    minWorkers: {
      type: "integer",
      minimum: 0,
      maximum: 1000,
      description:
        "With fewer workers that answer, no model is loaded in RPC mode; 0 runs models on this machine alone.",
    },
    allowPublicWorkers: {
      type: "boolean",
      description: "Let workers have public addresses: everybody on the way can read along, and use them.",
    },
  },
} as const;

export const speechSchema = {
  type: "object",
  additionalProperties: false,
  description: "Speech to text and text to speech. Absent: off.",
  properties: {
    transcription: {
      type: "object",
      additionalProperties: false,
      required: ["model"],
      description: "Speech to text, by whisper-server.",
      properties: {
        model: {
          type: "string",
          pattern: "^(ggml-)?[A-Za-z0-9_][A-Za-z0-9._-]*$",
          maxLength: 110,
          description: "A ggml model of whisper.cpp, by its file's name or in short: base.en.",
          examples: ["ggml-base.en.bin", "base.en"],
        },
      },
    },
    synthesis: {
      type: "object",
      additionalProperties: false,
      required: ["voice"],
      description: "Text to speech, with a Piper voice.",
      properties: {
        voice: {
          type: "string",
          pattern: "^[^\\s/\\\\.]+$",
          maxLength: 200,
          description: "A voice's id.",
          examples: ["en_US-lessac-medium"],
        },
      },
    },
    start: {
      enum: ["lazy", "now"],
      description: "lazy: an engine starts with the first request and ends when it is idle; now: it always runs.",
    },
  },
} as const;

export const documentSchema = {
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "gateway.yaml",
  description: "What should be true on this machine: Model Gateway makes it so.",
  type: "object",
  additionalProperties: false,
  required: ["version"],
  properties: {
    version: { const: 1, description: "The format of this document." },
    context: {
      type: "object",
      additionalProperties: false,
      properties: {
        default: { ...ctxSizeSchema, description: "[*] in router.preset.ini; without it the router decides." },
      },
    },
    models: {
      type: "array",
      description: "The models to have: missing ones are pulled.",
      maxItems: 500,
      items: { anyOf: [modelIdSchema, modelSchema] },
    },
    prune: {
      type: "boolean",
      description: "Delete models that this gateway pulled and this document no longer names.",
    },
    pruneAfter: {
      type: "integer",
      minimum: 0,
      maximum: 31_536_000,
      description: "Seconds that a model stays after it has left this document; 60 if absent.",
    },
    allowEmpty: { type: "boolean", description: "Let an empty list of models prune everything." },
    suspend: { type: "boolean", description: "Observe and plan, but apply nothing; the router keeps running." },
    rpc: rpcSchema,
    speech: speechSchema,
  },
} as const;

/** The document as written: short forms allowed, everything but `version` optional. */
export type DocumentInput = FromSchema<typeof documentSchema>;
