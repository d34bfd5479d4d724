// Bodies of the family compatible with OpenAI's API and Anthropic's messages. They pass through: what is named here is
// what the gateway reads, or what nobody can do without; everything else goes to the engine as it is.
import type { FromSchema } from "json-schema-to-ts";

const model = { type: "string", description: "OWNER/NAME:TAG, or any name that finds one model." } as const;

const common = {
  model,
  stream: { type: ["boolean", "null"], description: "Server-sent events; default false." },
  max_tokens: { type: "integer" },
  ctx_size: {
    type: "integer",
    description: "Context size; one that differs from that in force is put in force first. `num_ctx` is the same.",
  },
  num_ctx: { type: "integer" },
} as const;

const text = { type: "string" } as const;
const count = { type: "integer" } as const;

export const chatCompletionSchema = {
  title: "ChatCompletionRequest",
  type: "object",
  required: ["model"],
  properties: {
    ...common,
    messages: { type: "array", items: { type: "object", required: ["role"], properties: { role: text, content: {} } } },
    tools: { type: "array", items: { type: "object" } },
    temperature: { type: "number" },
  },
  examples: [{ model: "acme/alpha:Q8_0", messages: [{ role: "user", content: "hi" }], max_tokens: 32 }],
} as const;

export const chatCompletedSchema = {
  title: "ChatCompletion",
  type: "object",
  required: ["choices"],
  properties: {
    id: text,
    object: text,
    created: count,
    model: text,
    choices: {
      type: "array",
      items: {
        type: "object",
        required: ["message"],
        properties: { index: count, message: { type: "object" }, finish_reason: { type: ["string", "null"] } },
      },
    },
    usage: { type: "object" },
  },
  examples: [{ choices: [{ index: 0, message: { role: "assistant", content: "Hello" }, finish_reason: "stop" }] }],
} as const;

export const completionSchema = {
  title: "CompletionRequest",
  type: "object",
  required: ["model"],
  properties: { ...common, prompt: {} },
  examples: [{ model: "acme/alpha:Q8_0", prompt: "hi", max_tokens: 32 }],
} as const;

export const completedSchema = {
  title: "Completion",
  type: "object",
  properties: {
    choices: { type: "array", items: { type: "object", properties: { text } } },
    usage: { type: "object" },
  },
  examples: [{ choices: [{ text: "Hello" }] }],
} as const;

export const embeddingsSchema = {
  title: "EmbeddingsRequest",
  type: "object",
  required: ["model"],
  properties: { model, input: {}, encoding_format: { enum: ["float", "base64"] } },
  examples: [{ model: "acme/alpha:Q8_0", input: "hi" }],
} as const;

export const embeddedSchema = {
  title: "Embeddings",
  type: "object",
  required: ["data"],
  properties: {
    object: text,
    data: {
      type: "array",
      items: { type: "object", required: ["embedding"], properties: { index: count, embedding: {} } },
    },
    usage: { type: "object" },
  },
  examples: [{ object: "list", data: [{ index: 0, embedding: [0.1, -0.2] }] }],
} as const;

export const responsesSchema = {
  title: "ResponsesRequest",
  type: "object",
  required: ["model"],
  properties: { ...common, input: {}, max_output_tokens: count },
  examples: [{ model: "acme/alpha:Q8_0", input: "hi", max_output_tokens: 32 }],
} as const;

export const messagesSchema = {
  title: "MessagesRequest",
  type: "object",
  required: ["model"],
  properties: { ...common, system: {}, messages: { type: "array", items: { type: "object" } } },
  examples: [{ model: "acme/alpha:Q8_0", max_tokens: 32, messages: [{ role: "user", content: "hi" }] }],
} as const;

export const tokensCountedSchema = {
  title: "TokenCount",
  type: "object",
  required: ["input_tokens"],
  properties: { input_tokens: count },
  examples: [{ input_tokens: 12 }],
} as const;

/** A request that only names a model. */
export const modelNameSchema = {
  title: "ModelName",
  type: "object",
  required: ["model"],
  properties: { model },
  examples: [{ model: "acme/alpha:Q8_0" }],
} as const;

export const rerankSchema = {
  title: "RerankRequest",
  type: "object",
  required: ["model"],
  properties: { model, query: {}, documents: {}, top_n: count },
  examples: [{ model: "acme/alpha:Q8_0", query: "hi", documents: ["hi", "bye"] }],
} as const;

/** Of the engine's own routes: `content` of a tokenization, `prompt` of a completion, `input_prefix` of an infill, … */
export const engineRequestSchema = {
  title: "EngineRequest",
  description: "What the engine's own route takes; beside `model` it goes there as it is.",
  type: "object",
  required: ["model"],
  properties: {
    model,
    stream: common.stream,
    prompt: {},
    n_predict: count,
    content: {},
    tokens: { type: "array", items: count },
    messages: { type: "array", items: { type: "object" } },
    input_prefix: text,
    input_suffix: text,
  },
  examples: [{ model: "acme/alpha:Q8_0", prompt: "hi", content: "hi", n_predict: 16 }],
} as const;

export const loraScalesSchema = {
  title: "LoraScales",
  type: "array",
  items: {
    type: "object",
    additionalProperties: false,
    required: ["id", "scale"],
    properties: {
      id: { type: "integer", minimum: 0, description: "As `GET /lora-adapters` lists it." },
      scale: { type: "number", description: "0: the adapter is off. Adapters that are not named are off too." },
    },
  },
  examples: [[{ id: 0, scale: 0.5 }]],
} as const;

export const successSchema = {
  title: "Success",
  type: "object",
  required: ["success"],
  properties: { success: { const: true } },
  examples: [{ success: true }],
} as const;

export const healthSchema = {
  title: "Health",
  type: "object",
  required: ["status"],
  properties: { status: { const: "ok" } },
  examples: [{ status: "ok" }],
} as const;

/** What the engine answers, as it is. */
export const engineAnswerSchema = {
  title: "EngineAnswer",
  description: "The engine's own answer, unchanged.",
  examples: [{}],
} as const;

export const modelEntrySchema = {
  title: "Model",
  type: "object",
  additionalProperties: false,
  required: ["id", "object", "created", "owned_by", "loaded", "aliases", "status", "meta"],
  properties: {
    id: text,
    object: { const: "model" },
    created: { type: "integer", description: "Seconds since the epoch." },
    owned_by: text,
    context_length: { type: "integer", description: "The context size in force, in tokens." },
    n_ctx_train: { type: "integer", description: "The trained context, from the file; absent where it does not say." },
    loaded: { type: "boolean" },
    aliases: { type: "array", items: text, description: "Other names that it answers to." },
    status: {
      type: "object",
      additionalProperties: false,
      required: ["value"],
      properties: { value: { type: "string", examples: ["unloaded", "loading", "loaded"] } },
    },
    meta: {
      type: "object",
      additionalProperties: false,
      properties: { n_ctx: count, n_ctx_train: count },
    },
  },
  examples: [
    {
      id: "acme/alpha:Q8_0",
      object: "model",
      created: 1_769_860_800,
      owned_by: "acme",
      context_length: 8192,
      n_ctx_train: 8192,
      loaded: false,
      aliases: [],
      status: { value: "unloaded" },
      meta: { n_ctx: 8192, n_ctx_train: 8192 },
    },
  ],
} as const;

export type ModelEntry = FromSchema<typeof modelEntrySchema>;

export const modelListSchema = {
  title: "ModelList",
  type: "object",
  additionalProperties: false,
  required: ["object", "data"],
  properties: { object: { const: "list" }, data: { type: "array", items: modelEntrySchema } },
  examples: [{ object: "list", data: [] }],
} as const;

export type ModelList = FromSchema<typeof modelListSchema>;
