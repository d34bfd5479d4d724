// Bodies of the family wire-compatible with Ollama's API. Open: what is not named here is taken and left alone.
import type { FromSchema } from "json-schema-to-ts";
import { flag, integer, list, number, open, text } from "./shapes.ts";

const model = text("OWNER/NAME:TAG, or any name that finds one model.");
const alpha = { model: "acme/alpha:Q8_0" } as const;
const exampleTime = "2026-01-31T12:00:00.000Z";
const object = { type: "object" } as const;
const textOrTexts = { anyOf: [text(), list(text())] } as const;
const images = list(text("base64"));
const streaming = flag("Default true.");

const keep_alive = {
  type: ["number", "string"],
  description: "Seconds, or a duration such as `5m`; negative: for ever; 0: unload after the answer.",
} as const;

const options = {
  title: "NativeOptions",
  ...open(
    {},
    {
      num_ctx: integer("Context size; one that differs from that in force is put in force first."),
      num_predict: integer("Tokens at most; -1: as many as it takes."),
      temperature: number(),
      top_k: integer(),
      top_p: number(),
      min_p: number(),
      seed: integer(),
      stop: textOrTexts,
      repeat_penalty: number(),
    },
  ),
} as const;

const generating = {
  stream: streaming,
  format: { description: "`json`, or a JSON schema." },
  keep_alive,
  options,
  think: { type: ["boolean", "string"] },
} as const;

const toolCallSchema = {
  title: "NativeToolCall",
  ...open({ function: open({ name: text(), arguments: object }) }),
} as const;

const messageSchema = {
  title: "NativeMessage",
  ...open(
    { role: { enum: ["system", "user", "assistant", "tool"] } },
    { content: text(), thinking: text(), images, tool_calls: list(toolCallSchema), tool_name: text() },
  ),
} as const;

export const nativeChatSchema = {
  title: "NativeChat",
  ...open(
    { model },
    {
      ...generating,
      messages: list(messageSchema, "Empty or absent: load, or with keep_alive 0 unload."),
      tools: list(object),
    },
  ),
  examples: [{ ...alpha, messages: [{ role: "user", content: "hi" }], stream: false }],
} as const;

/** The last record of an answer has these. */
const ending = {
  done_reason: { ...text(), examples: ["stop", "length", "load", "unload"] },
  total_duration: integer("Nanoseconds, as all durations."),
  load_duration: integer(),
  prompt_eval_count: integer(),
  prompt_eval_duration: integer(),
  eval_count: integer(),
  eval_duration: integer(),
} as const;

const record = { model: text(), created_at: text(), done: flag() } as const;
const recordDescription = "One per line of a stream; the last has `done: true`.";

export const nativeChatRecordSchema = {
  title: "NativeChatRecord",
  description: recordDescription,
  ...open({ ...record, message: messageSchema }, ending),
  examples: [
    {
      ...alpha,
      created_at: exampleTime,
      message: { role: "assistant", content: "Hello" },
      done: true,
      done_reason: "stop",
    },
  ],
} as const;

export const nativeGenerateSchema = {
  title: "NativeGenerate",
  ...open(
    { model },
    {
      ...generating,
      prompt: text("Empty or absent: load, or with keep_alive 0 unload."),
      suffix: text(),
      system: text(),
      template: text(),
      raw: flag(),
      images,
    },
  ),
  examples: [{ ...alpha, prompt: "hi", stream: false }],
} as const;

export const nativeGenerateRecordSchema = {
  title: "NativeGenerateRecord",
  description: recordDescription,
  ...open({ ...record, response: text() }, { thinking: text(), ...ending }),
  examples: [{ ...alpha, created_at: exampleTime, response: "Hello", done: false }],
} as const;

const name = text("The older word for `model`.");

/** A request for one model. */
const named = { anyOf: [{ required: ["model"] }, { required: ["name"] }], examples: [alpha] } as const;

export const nativeModelSchema = { title: "NativeModel", ...open({}, { model, name }), ...named } as const;

export const nativeShowSchema = {
  title: "NativeShow",
  ...open({}, { model, name, verbose: flag() }),
  ...named,
} as const;

const keep = flag(
  "Default false. True: the document goes on wanting the model when the client leaves, or the hub is away for long.",
);

export const nativePullSchema = {
  title: "NativePull",
  ...open({}, { model, name, stream: streaming, insecure: flag("Taken and left alone."), keep }),
  ...named,
} as const;

export const nativePullRecordSchema = {
  title: "NativePullRecord",
  description: "One per line; `digest` is one file. The last says `success`.",
  ...open(
    { status: text() },
    {
      digest: {
        ...text(),
        examples: ["sha256:2bada8a7450677000f678be90653b85d364de7db25eb5ea54136ada5f3933730"],
      },
      total: integer("Bytes."),
      completed: integer("Bytes."),
      error: text("Instead of `status`, where it fails after the first line."),
    },
  ),
  examples: [{ status: "pulling manifest" }, { status: "success" }],
} as const;

export type NativePullRecord = FromSchema<typeof nativePullRecordSchema>;

export const nativeCopySchema = {
  title: "NativeCopy",
  ...open({ source: model, destination: text("Another name for the same model.") }),
  examples: [{ source: alpha.model, destination: "alpha" }],
} as const;

export const nativeEmbedSchema = {
  title: "NativeEmbed",
  ...open({ model }, { input: textOrTexts, truncate: flag(), dimensions: integer(), keep_alive, options }),
  examples: [{ ...alpha, input: ["hi"] }],
} as const;

const vector = list(number());

export const nativeEmbeddedSchema = {
  title: "NativeEmbedded",
  ...open(
    { model: text(), embeddings: list(vector) },
    { total_duration: integer(), load_duration: integer(), prompt_eval_count: integer() },
  ),
  examples: [{ ...alpha, embeddings: [[0.1, -0.2]] }],
} as const;

export const nativeEmbeddingsSchema = {
  title: "NativeEmbeddings",
  ...open({ model }, { prompt: text(), keep_alive, options }),
  examples: [{ ...alpha, prompt: "hi" }],
} as const;

export const nativeEmbeddingSchema = {
  title: "NativeEmbedding",
  ...open({ embedding: vector }),
  examples: [{ embedding: [0.1, -0.2] }],
} as const;

const details = {
  title: "NativeDetails",
  ...open(
    { format: { ...text(), examples: ["gguf"] }, family: text(), parameter_size: text(), quantization_level: text() },
    {
      parent_model: text(),
      families: { type: ["array", "null"], items: text() },
      context_length: integer(),
    },
  ),
} as const;

const entry = {
  name: text(),
  model: text(),
  size: integer("Bytes."),
  digest: text("SHA-256 in hex."),
  details,
} as const;

const tag = open({ ...entry, modified_at: text("RFC 3339.") }, { capabilities: list(text()) });

export const nativeTagsSchema = {
  title: "NativeTags",
  ...open({ models: list(tag) }),
  examples: [{ models: [] }],
} as const;

const loadedModel = open(
  { ...entry, expires_at: text("RFC 3339: when it is unloaded."), size_vram: integer() },
  { context_length: integer() },
);

export const nativePsSchema = {
  title: "NativePs",
  description: "The loaded models.",
  ...open({ models: list(loadedModel) }),
  examples: [{ models: [] }],
} as const;

export const nativeShownSchema = {
  title: "NativeShown",
  ...open(
    {
      details,
      model_info: { ...object, description: "The file's metadata: `general.architecture`, `llama.context_length`, …" },
      capabilities: { ...list(text()), examples: [["completion", "tools"]] },
    },
    {
      license: text(),
      modelfile: text(),
      parameters: text("One `name  value` per line."),
      template: text(),
      modified_at: text("RFC 3339."),
      system: text(),
      projector_info: object,
    },
  ),
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
  ...open({ version: text("Of Ollama's API as it is spoken here.") }),
  examples: [{ version: "0.20.0" }],
} as const;
