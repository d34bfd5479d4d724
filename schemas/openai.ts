// Bodies of the family compatible with OpenAI's API and Anthropic's messages. They pass through: the schemas name what the
// gateway reads and what every client needs; everything else goes to the engine unchanged.
import type { FromSchema } from "json-schema-to-ts";
import { needSchema } from "./memory.ts";
import { exact, flag, integer, list, number, open, text } from "./shapes.ts";

const model = text("OWNER/NAME:TAG, or any name that finds one model.");
const object = { type: "object" } as const;
const hello = [{ role: "user", content: "hi" }] as const;
const alpha = "acme/alpha:Q8_0";

const stream = { type: ["boolean", "null"], description: "Server-sent events; default false." } as const;

const generating = {
  stream,
  max_tokens: integer(),
  ctx_size: integer("Context size; one that differs from that in force is put in force first. `num_ctx` is the same."),
  num_ctx: integer(),
} as const;

export const chatCompletionSchema = {
  title: "ChatCompletionRequest",
  ...open(
    { model },
    {
      ...generating,
      messages: list(open({ role: text() }, { content: {} })),
      tools: list(object),
      temperature: number(),
    },
  ),
  examples: [{ model: alpha, messages: hello, max_tokens: 32 }],
} as const;

const choice = open({ message: object }, { index: integer(), finish_reason: { type: ["string", "null"] } });

export const chatCompletedSchema = {
  title: "ChatCompletion",
  ...open({ choices: list(choice) }, { id: text(), object: text(), created: integer(), model: text(), usage: object }),
} as const;

export const completionSchema = {
  title: "CompletionRequest",
  ...open({ model }, { ...generating, prompt: {} }),
  examples: [{ model: alpha, prompt: "hi", max_tokens: 32 }],
} as const;

export const completedSchema = {
  title: "Completion",
  ...open({}, { choices: list(open({}, { text: text() })), usage: object }),
} as const;

export const embeddingsSchema = {
  title: "EmbeddingsRequest",
  ...open({ model }, { input: {}, encoding_format: { enum: ["float", "base64"] } }),
  examples: [{ model: alpha, input: "hi" }],
} as const;

export const embeddedSchema = {
  title: "Embeddings",
  ...open({ data: list(open({ embedding: {} }, { index: integer() })) }, { object: text(), usage: object }),
} as const;

export const responsesSchema = {
  title: "ResponsesRequest",
  ...open({ model }, { ...generating, input: {}, max_output_tokens: integer() }),
  examples: [{ model: alpha, input: "hi", max_output_tokens: 32 }],
} as const;

export const messagesSchema = {
  title: "MessagesRequest",
  ...open({ model }, { ...generating, system: {}, messages: list(object) }),
  examples: [{ model: alpha, max_tokens: 32, messages: hello }],
} as const;

export const tokensCountedSchema = { title: "TokenCount", ...open({ input_tokens: integer() }) } as const;

/** A request that only names a model. */
export const modelNameSchema = { title: "ModelName", ...open({ model }), examples: [{ model: alpha }] } as const;

export const rerankSchema = {
  title: "RerankRequest",
  ...open({ model }, { query: {}, documents: {}, top_n: integer() }),
  examples: [{ model: alpha, query: "hi", documents: ["hi", "bye"] }],
} as const;

/** Of the engine's own routes: `content` of a tokenization, `prompt` of a completion, `input_prefix` of an infill, … */
export const engineRequestSchema = {
  title: "EngineRequest",
  description: "What the engine's own route takes; beside `model` it goes there as it is.",
  ...open(
    { model },
    {
      stream,
      prompt: {},
      n_predict: integer(),
      content: {},
      tokens: list(integer()),
      messages: list(object),
      input_prefix: text(),
      input_suffix: text(),
    },
  ),
  examples: [{ model: alpha, prompt: "hi", content: "hi", n_predict: 16 }],
} as const;

export const successSchema = { title: "Success", ...open({ success: { const: true } }) } as const;

export const healthSchema = { title: "Health", ...open({ status: { const: "ok" } }) } as const;

export const engineAnswerSchema = {
  title: "EngineAnswer",
  description: "The engine's own answer, unchanged.",
} as const;

export const modelEntrySchema = {
  title: "Model",
  ...exact(
    {
      id: text(),
      object: { const: "model" },
      created: integer("Seconds since the epoch."),
      owned_by: text(),
      loaded: flag(),
      aliases: list(text(), "Other names that it answers to."),
      status: exact({ value: { ...text(), examples: ["unloaded", "loading", "loaded"] } }),
      meta: exact({}, { n_ctx: integer(), n_ctx_train: integer(), memory: needSchema }),
    },
    {
      context_length: integer("The context size in force, in tokens."),
      n_ctx_train: integer("The trained context, from the file; absent where it does not say."),
      variant_of: text("Of a variant: the id of its model, whose process it shares."),
    },
  ),
} as const;

export type ModelEntry = FromSchema<typeof modelEntrySchema>;

export const modelListSchema = {
  title: "ModelList",
  ...exact({ object: { const: "list" }, data: list(modelEntrySchema) }),
} as const;

export type ModelList = FromSchema<typeof modelListSchema>;
