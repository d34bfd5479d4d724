// Bodies of the family wire-compatible with Ollama's API. Open: what is not named here is taken and left alone.
import type { FromSchema } from "json-schema-to-ts";

const model = { type: "string", description: "OWNER/NAME:TAG, or any name that finds one model." } as const;
const keepAlive = {
  type: ["number", "string"],
  description: "Seconds, or a duration such as `5m`; negative: for ever; 0: unload after the answer.",
} as const;
const count = { type: "integer" } as const;
const text = { type: "string" } as const;

const optionsSchema = {
  title: "NativeOptions",
  type: "object",
  properties: {
    num_ctx: {
      type: "integer",
      description: "Context size; one that differs from that in force is put in force first.",
    },
    num_predict: { type: "integer", description: "Tokens at most; -1: as many as it takes." },
    temperature: { type: "number" },
    top_k: { type: "integer" },
    top_p: { type: "number" },
    min_p: { type: "number" },
    seed: { type: "integer" },
    stop: { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] },
    repeat_penalty: { type: "number" },
  },
} as const;

const generationProperties = {
  model,
  stream: { type: "boolean", description: "Default true." },
  format: { description: "`json`, or a JSON schema." },
  keep_alive: keepAlive,
  options: optionsSchema,
  think: { type: ["boolean", "string"] },
} as const;

const toolCallSchema = {
  title: "NativeToolCall",
  type: "object",
  required: ["function"],
  properties: {
    function: {
      type: "object",
      required: ["name", "arguments"],
      properties: { name: { type: "string" }, arguments: { type: "object" } },
    },
  },
} as const;

const messageSchema = {
  title: "NativeMessage",
  type: "object",
  required: ["role"],
  properties: {
    role: { enum: ["system", "user", "assistant", "tool"] },
    content: text,
    thinking: text,
    images: { type: "array", items: { type: "string", description: "base64" } },
    tool_calls: { type: "array", items: toolCallSchema },
    tool_name: text,
  },
} as const;

export const nativeChatSchema = {
  title: "NativeChat",
  type: "object",
  required: ["model"],
  properties: {
    ...generationProperties,
    messages: {
      type: "array",
      items: messageSchema,
      description: "Empty or absent: load, or with keep_alive 0 unload.",
    },
    tools: { type: "array", items: { type: "object" } },
  },
  examples: [{ model: "acme/alpha:Q8_0", messages: [{ role: "user", content: "hi" }], stream: false }],
} as const;

const ending = {
  done: { type: "boolean" },
  done_reason: { type: "string", examples: ["stop", "length", "load", "unload"] },
  total_duration: { ...count, description: "Nanoseconds, as all durations." },
  load_duration: count,
  prompt_eval_count: count,
  prompt_eval_duration: count,
  eval_count: count,
  eval_duration: count,
} as const;

export const nativeChatRecordSchema = {
  title: "NativeChatRecord",
  description: "One per line of a stream; the last has `done: true`.",
  type: "object",
  required: ["model", "created_at", "message", "done"],
  properties: { model: text, created_at: text, message: messageSchema, ...ending },
  examples: [
    {
      model: "acme/alpha:Q8_0",
      created_at: "2026-01-31T12:00:00.000Z",
      message: { role: "assistant", content: "Hello" },
      done: true,
      done_reason: "stop",
    },
  ],
} as const;

export const nativeGenerateSchema = {
  title: "NativeGenerate",
  type: "object",
  required: ["model"],
  properties: {
    ...generationProperties,
    prompt: { type: "string", description: "Empty or absent: load, or with keep_alive 0 unload." },
    suffix: text,
    system: text,
    template: text,
    raw: { type: "boolean" },
    images: { type: "array", items: { type: "string", description: "base64" } },
  },
  examples: [{ model: "acme/alpha:Q8_0", prompt: "hi", stream: false }],
} as const;

export const nativeGenerateRecordSchema = {
  title: "NativeGenerateRecord",
  description: "One per line of a stream; the last has `done: true`.",
  type: "object",
  required: ["model", "created_at", "response", "done"],
  properties: { model: text, created_at: text, response: text, thinking: text, ...ending },
  examples: [{ model: "acme/alpha:Q8_0", created_at: "2026-01-31T12:00:00.000Z", response: "Hello", done: false }],
} as const;

const named = {
  type: "object",
  properties: { model, name: { type: "string", description: "The older word for `model`." } },
  anyOf: [{ required: ["model"] }, { required: ["name"] }],
} as const;

export const nativeModelSchema = {
  ...named,
  title: "NativeModel",
  examples: [{ model: "acme/alpha:Q8_0" }],
} as const;

export const nativeShowSchema = {
  ...named,
  title: "NativeShow",
  properties: { ...named.properties, verbose: { type: "boolean" } },
  examples: [{ model: "acme/alpha:Q8_0" }],
} as const;

export const nativePullSchema = {
  ...named,
  title: "NativePull",
  properties: {
    ...named.properties,
    stream: { type: "boolean", description: "Default true." },
    insecure: { type: "boolean", description: "Taken and left alone." },
    keep: {
      type: "boolean",
      description:
        "Default false. True: the document goes on wanting the model when the client leaves, or the hub is away for long.",
    },
  },
  examples: [{ model: "acme/alpha:Q8_0" }],
} as const;

export const nativePullRecordSchema = {
  title: "NativePullRecord",
  description: "One per line; `digest` is one file. The last says `success`.",
  type: "object",
  required: ["status"],
  properties: {
    status: text,
    digest: { type: "string", examples: ["sha256:2bada8a7450677000f678be90653b85d364de7db25eb5ea54136ada5f3933730"] },
    total: { ...count, description: "Bytes." },
    completed: { ...count, description: "Bytes." },
    error: { type: "string", description: "Instead of `status`, where it fails after the first line." },
  },
  examples: [{ status: "pulling manifest" }, { status: "success" }],
} as const;

export type NativePullRecord = FromSchema<typeof nativePullRecordSchema>;

export const nativeCopySchema = {
  title: "NativeCopy",
  type: "object",
  required: ["source", "destination"],
  properties: { source: model, destination: { type: "string", description: "Another name for the same model." } },
  examples: [{ source: "acme/alpha:Q8_0", destination: "alpha" }],
} as const;

export const nativeEmbedSchema = {
  title: "NativeEmbed",
  type: "object",
  required: ["model"],
  properties: {
    model,
    input: { anyOf: [{ type: "string" }, { type: "array", items: { type: "string" } }] },
    truncate: { type: "boolean" },
    dimensions: { type: "integer" },
    keep_alive: keepAlive,
    options: optionsSchema,
  },
  examples: [{ model: "acme/alpha:Q8_0", input: ["hi"] }],
} as const;

const vector = { type: "array", items: { type: "number" } } as const;

export const nativeEmbeddedSchema = {
  title: "NativeEmbedded",
  type: "object",
  required: ["model", "embeddings"],
  properties: {
    model: text,
    embeddings: { type: "array", items: vector },
    total_duration: count,
    load_duration: count,
    prompt_eval_count: count,
  },
  examples: [{ model: "acme/alpha:Q8_0", embeddings: [[0.1, -0.2]] }],
} as const;

export const nativeEmbeddingsSchema = {
  title: "NativeEmbeddings",
  type: "object",
  required: ["model"],
  properties: { model, prompt: text, keep_alive: keepAlive, options: optionsSchema },
  examples: [{ model: "acme/alpha:Q8_0", prompt: "hi" }],
} as const;

export const nativeEmbeddingSchema = {
  title: "NativeEmbedding",
  type: "object",
  required: ["embedding"],
  properties: { embedding: vector },
  examples: [{ embedding: [0.1, -0.2] }],
} as const;
