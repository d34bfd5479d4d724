// Requests and answers of the gateway's own routes on models, RPC workers and the hub.
import type { FromSchema } from "json-schema-to-ts";

const modelName = {
  type: "string",
  minLength: 1,
  maxLength: 500,
  description: "A model's id, an alias, or a short name that only one model has.",
  examples: ["ggml-org/gemma-3-270m-it-GGUF:Q8_0"],
} as const;

const modelId = { type: "string", description: "The model's id." } as const;

export const setContextSizeSchema = {
  title: "SetContextSize",
  type: "object",
  additionalProperties: false,
  required: ["model", "ctx_size"],
  properties: {
    model: modelName,
    ctx_size: {
      type: "integer",
      minimum: 1,
      maximum: 16_777_216,
      description:
        "Context size in tokens. The engine runs none below 256: less is raised to that, and the answer says so.",
    },
  },
  examples: [{ model: "ggml-org/gemma-3-270m-it-GGUF:Q8_0", ctx_size: 8192 }],
} as const;

export const contextSizeSetSchema = {
  title: "ContextSizeSet",
  type: "object",
  additionalProperties: false,
  required: ["ok", "model", "ctx_size"],
  properties: {
    ok: { const: true },
    model: modelId,
    ctx_size: { type: "integer", description: "The size that is in force." },
  },
  examples: [{ ok: true, model: "ggml-org/gemma-3-270m-it-GGUF:Q8_0", ctx_size: 8192 }],
} as const;

/** Of an eject and of a removal. */
export const modelRequestSchema = {
  title: "ModelRequest",
  type: "object",
  additionalProperties: false,
  required: ["model"],
  properties: { model: modelName },
  examples: [{ model: "ggml-org/gemma-3-270m-it-GGUF:Q8_0" }],
} as const;

export const ejectedSchema = {
  title: "Ejected",
  type: "object",
  additionalProperties: false,
  required: ["ok", "model"],
  properties: { ok: { const: true }, model: modelId },
  examples: [{ ok: true, model: "ggml-org/gemma-3-270m-it-GGUF:Q8_0" }],
} as const;

export const removedSchema = {
  title: "Removed",
  type: "object",
  additionalProperties: false,
  required: ["ok", "model", "deleted_files", "freed_bytes", "removed_preset_section"],
  properties: {
    ok: { const: true },
    model: modelId,
    deleted_files: { type: "integer", minimum: 0, description: "Links and blobs." },
    freed_bytes: { type: "integer", minimum: 0 },
    removed_preset_section: {
      type: "boolean",
      description: "It had a context size of its own in router.preset.ini.",
    },
  },
  examples: [
    {
      ok: true,
      model: "ggml-org/gemma-3-270m-it-GGUF:Q8_0",
      deleted_files: 2,
      freed_bytes: 291_545_088,
      removed_preset_section: true,
    },
  ],
} as const;

export const rpcModeRequestSchema = {
  title: "RpcModeRequest",
  type: "object",
  additionalProperties: false,
  required: ["mode"],
  properties: { mode: { enum: ["single", "rpc"], description: "single: this machine only; rpc: with the workers." } },
  examples: [{ mode: "rpc" }],
} as const;

const worker = {
  type: "string",
  minLength: 1,
  maxLength: 300,
  description: "HOST:PORT of a ggml-rpc-server.",
  examples: ["192.168.1.20:50052"],
} as const;

export const rpcWorkersRequestSchema = {
  title: "RpcWorkersRequest",
  description: "Several, or one.",
  type: "object",
  additionalProperties: false,
  minProperties: 1,
  maxProperties: 1,
  properties: { workers: { type: "array", minItems: 1, maxItems: 64, items: worker }, worker },
  examples: [{ workers: ["192.168.1.20:50052"] }],
} as const;

export type RpcWorkersRequest = FromSchema<typeof rpcWorkersRequestSchema>;

export const rpcRosterSchema = {
  title: "RpcRoster",
  type: "object",
  additionalProperties: false,
  required: ["ok", "mode", "workers", "notInUse"],
  properties: {
    ok: { const: true },
    mode: { enum: ["single", "rpc"] },
    workers: { type: "array", items: worker },
    notInUse: {
      type: "array",
      description: "Workers that cannot be used as things are, and why: the rest is in force without them.",
      items: {
        type: "object",
        additionalProperties: false,
        required: ["address", "reason", "message"],
        properties: {
          address: worker,
          reason: { type: "string", description: "That of the worker's condition.", examples: ["Refused"] },
          message: { type: "string" },
        },
      },
    },
  },
  examples: [
    {
      ok: true,
      mode: "rpc",
      workers: ["192.168.1.20:50052", "192.168.1.21:50052"],
      notInUse: [
        { address: "192.168.1.21:50052", reason: "Refused", message: "nothing listens on 192.168.1.21:50052" },
      ],
    },
  ],
} as const;

export const removeQuerySchema = {
  type: "object",
  additionalProperties: false,
  properties: {
    dryRun: { type: "string", enum: ["true", "false"], description: "`true`: find the model and delete nothing." },
  },
} as const;

export const hubSearchQuerySchema = {
  type: "object",
  additionalProperties: false,
  properties: {
    q: { type: "string", maxLength: 200, default: "", description: "What to look for; empty: the most downloaded." },
    limit: { type: "integer", minimum: 1, maximum: 1000, default: 20, description: "At most so many." },
  },
} as const;

export const hubReposSchema = {
  title: "HubRepositories",
  description: "Repositories of GGUF models, most downloaded first.",
  type: "array",
  items: {
    title: "HubRepository",
    type: "object",
    additionalProperties: false,
    required: ["id", "downloads", "likes"],
    properties: {
      id: { type: "string", description: "OWNER/NAME" },
      downloads: { type: "integer" },
      likes: { type: "integer" },
    },
  },
  examples: [[{ id: "ggml-org/gemma-3-270m-it-GGUF", downloads: 12_345, likes: 67 }]],
} as const;

export const hubFilesQuerySchema = {
  type: "object",
  additionalProperties: false,
  required: ["repo"],
  properties: {
    repo: { type: "string", minLength: 1, maxLength: 200, pattern: "^[^/]+/[^/]+$", description: "OWNER/NAME" },
  },
} as const;

export const hubFilesSchema = {
  title: "HubFiles",
  description: "All .gguf files of the repository's main branch, shards and projectors too.",
  type: "array",
  items: {
    title: "HubFile",
    type: "object",
    additionalProperties: false,
    required: ["path", "size"],
    properties: { path: { type: "string" }, size: { type: "integer", description: "Bytes." } },
  },
  examples: [[{ path: "gemma-3-270m-it-Q8_0.gguf", size: 291_545_088 }]],
} as const;

/** Of the two searches for voices and transcription models. */
export const speechSearchQuerySchema = {
  type: "object",
  additionalProperties: false,
  properties: { q: { type: "string", maxLength: 200, description: "A part of a name; without it, all." } },
} as const;

export const noQuerySchema = { type: "object", additionalProperties: false, properties: {} } as const;
