// Requests and responses of the gateway's own routes on models, RPC workers and the hub.
import type { FromSchema } from "json-schema-to-ts";
import { needOrNullSchema } from "./memory.ts";
import { amount, exact, flag, integer, list, maybe, number, success, text } from "./shapes.ts";

const exampleModel = "ggml-org/gemma-3-270m-it-GGUF:Q8_0";

const modelName = {
  ...text("A model's id, an alias, or a short name that only one model has."),
  minLength: 1,
  maxLength: 500,
  examples: [exampleModel],
} as const;

const modelId = text("The model's id.");

export const setContextSizeSchema = {
  title: "SetContextSize",
  ...exact({
    model: modelName,
    ctx_size: {
      ...integer(
        "Context size in tokens. The engine runs none below 256: less is raised to that, and the answer says so.",
      ),
      minimum: 1,
      maximum: 16_777_216,
    },
  }),
  examples: [{ model: exampleModel, ctx_size: 8192 }],
} as const;

export const contextSizeSetSchema = {
  title: "ContextSizeSet",
  ...exact({ ok: success, model: modelId, ctx_size: integer("The size that is in force.") }),
} as const;

export type ContextSizeSet = FromSchema<typeof contextSizeSetSchema>;

/** Of an eject and of a removal. */
export const modelRequestSchema = {
  title: "ModelRequest",
  ...exact({ model: modelName }),
  examples: [{ model: exampleModel }],
} as const;

export const ejectedSchema = { title: "Ejected", ...exact({ ok: success, model: modelId }) } as const;

export type Ejected = FromSchema<typeof ejectedSchema>;

export const benchSchema = {
  title: "Bench",
  ...exact({
    model: modelId,
    file: text("Absolute path of what was measured."),
    type: { ...text("Architecture, size and quantization."), examples: ["llama 8B Q4_K - Medium"] },
    build: { ...text("Of the engine."), examples: ["11669 (Debian)"] },
    hardware: text("Processor, GPU and backends."),
    settings: {
      type: "object",
      description: "What it was measured with, by the preset's keys.",
      additionalProperties: text(),
    },
    leftOut: list(text(), "Keys of the model's preset that llama-bench has no option for."),
    tests: list(
      exact({
        kind: { enum: ["prompt", "generation"], description: "Tokens that are read, or written." },
        tokens: integer(),
        tokensPerSecond: number(),
        deviation: number("Standard deviation of the runs."),
      }),
    ),
  }),
} as const;

export type BenchBody = FromSchema<typeof benchSchema>;

export const removeQuerySchema = exact({}, { dryRun: flag("Find the model and delete nothing.") });

export const removedSchema = {
  title: "Removed",
  ...exact({
    ok: success,
    model: modelId,
    deleted_files: amount("Links and blobs."),
    freed_bytes: amount(),
    removed_preset_section: flag("It had a context size of its own in router.preset.ini."),
  }),
} as const;

export type Removed = FromSchema<typeof removedSchema>;

const rpcMode = { enum: ["single", "rpc"], description: "single: this machine only; rpc: with the workers." } as const;

export const rpcModeRequestSchema = {
  title: "RpcModeRequest",
  ...exact({ mode: rpcMode }),
  examples: [{ mode: "rpc" }],
} as const;

const worker = {
  ...text("HOST:PORT of a ggml-rpc-server."),
  minLength: 1,
  maxLength: 300,
  examples: ["192.168.1.20:50052"],
} as const;

export const rpcWorkersRequestSchema = {
  title: "RpcWorkersRequest",
  description: "Several, or one.",
  ...exact({}, { workers: { ...list(worker), minItems: 1, maxItems: 64 }, worker }),
  minProperties: 1,
  maxProperties: 1,
  examples: [{ workers: ["192.168.1.20:50052"] }],
} as const;

const unusedWorker = exact({
  address: worker,
  reason: { ...text("That of the worker's condition."), examples: ["Refused"] },
  message: text(),
});

export const rpcRosterSchema = {
  title: "RpcRoster",
  ...exact({
    ok: success,
    mode: rpcMode,
    workers: list(worker),
    notInUse: list(unusedWorker, "Workers that cannot be used at present, and why: the rest is in force without them."),
  }),
} as const;

export type RpcRoster = FromSchema<typeof rpcRosterSchema>;

export const hubSearchQuerySchema = exact(
  {},
  {
    q: { ...text("Text to search for; empty: the most downloaded."), maxLength: 200, default: "" },
    limit: { ...integer("At most so many."), minimum: 1, maximum: 1000, default: 20 },
    license: flag("With the license of each."),
  },
);

export const hubReposSchema = {
  title: "HubRepositories",
  description: "Repositories of GGUF models, most downloaded first.",
  type: "array",
  items: {
    title: "HubRepository",
    ...exact(
      { id: text("OWNER/NAME"), downloads: integer(), likes: integer() },
      {
        license: {
          ...maybe(text("As its card states it; null: it states none. Only with `license=true`.")),
          examples: ["apache-2.0"],
        },
      },
    ),
  },
} as const;

export type HubRepos = FromSchema<typeof hubReposSchema>;

export const hubFilesQuerySchema = exact(
  { repo: { ...text("OWNER/NAME"), minLength: 1, maxLength: 200, pattern: "^[^/]+/[^/]+$" } },
  { memory: flag("List models in place of files, with what each would take of memory.") },
);

export const hubFilesSchema = {
  title: "HubFiles",
  description: "All .gguf files of the repository's main branch, shards and projectors too.",
  type: "array",
  items: { title: "HubFile", ...exact({ path: text(), size: integer("Bytes.") }) },
} as const;

export type HubFiles = FromSchema<typeof hubFilesSchema>;

export const hubModelsSchema = {
  title: "HubModels",
  description: "The models of the repository's main branch by their tags.",
  type: "array",
  items: {
    title: "HubModel",
    ...exact({
      tag: { ...text("As in a model's id."), examples: ["Q4_K_M"] },
      files: list(text(), "All shards, and the projector if there is one."),
      size: maybe(integer("Bytes of these files; null: not known.")),
      need: { ...needOrNullSchema, description: "Estimated by the heads of its files; null: not known." },
      fits: maybe(flag("Whether it fits into the memory that models may take, alone; null: not known.")),
      why: maybe(text("Why it is not known.")),
    }),
  },
} as const;

export type HubModels = FromSchema<typeof hubModelsSchema>;

/** Of the two searches for voices and transcription models. */
export const speechSearchQuerySchema = exact(
  {},
  { q: { ...text("A part of a name; without it, all."), maxLength: 200 } },
);

export const noQuerySchema = exact({});
