// Bodies of the family wire-compatible with Ollama's API. Open: what is not named here is taken and left alone.
import type { FromSchema } from "json-schema-to-ts";
import { needSchema } from "./memory.ts";
import { flag, integer, list, maybe, number, open, text } from "./shapes.ts";

const model = { ...text("OWNER/NAME:TAG, or any name that finds one model."), minLength: 1 } as const;
const alpha = { model: "acme/alpha:Q8_0" } as const;
const object = { type: "object" } as const;
const texts = { type: ["string", "array", "null"], items: text() } as const;
const images = maybe(list(text("base64")));
const streaming = maybe(flag("Default true."));
const ignored = maybe(flag("Taken and left alone."));

const keep_alive = {
  type: ["number", "string", "null"],
  description: "Seconds, or a duration such as `5m`; negative: for ever; 0: unload after the answer.",
} as const;

/** Options that llama-server takes under the same name. Those of loading (`num_gpu`, `num_batch`, …) are not passed. */
export const samplingOptions = [
  "temperature",
  "top_k",
  "top_p",
  "min_p",
  "typical_p",
  "seed",
  "repeat_last_n",
  "repeat_penalty",
  "presence_penalty",
  "frequency_penalty",
  "mirostat",
  "mirostat_tau",
  "mirostat_eta",
] as const;

const maybeNumber = maybe(number());
const sampling = Object.fromEntries(samplingOptions.map((name) => [name, maybeNumber]));

const options = maybe({
  title: "NativeOptions",
  ...open(
    {},
    {
      ...(sampling as Record<(typeof samplingOptions)[number], typeof maybeNumber>),
      num_ctx: maybe({
        ...integer("Context size; one that differs from that in force is put in force first."),
        minimum: 1,
        maximum: 16_777_216,
      }),
      num_predict: maybe(number("Tokens at most; -1: as many as it takes.")),
      stop: texts,
    },
  ),
});

const generating = {
  stream: streaming,
  format: { type: ["string", "object", "null"], description: "`json`, or a JSON schema." },
  keep_alive,
  options,
  think: { enum: [true, false, "low", "medium", "high", "max", null] },
  logprobs: maybe(flag()),
  top_logprobs: maybe({ ...integer("Alternatives to each token."), minimum: 0, maximum: 20 }),
  truncate: ignored,
  shift: ignored,
} as const;

const called = open({ name: text() }, { arguments: maybe(object) });

const toolCallSchema = { title: "NativeToolCall", ...open({ function: called }, { id: maybe(text()) }) } as const;

const messageSchema = {
  title: "NativeMessage",
  ...open(
    { role: { enum: ["system", "user", "assistant", "tool"] } },
    {
      content: maybe(text()),
      thinking: maybe(text()),
      images,
      tool_calls: maybe(list(toolCallSchema)),
      tool_name: maybe(text("Of a result.")),
      name: maybe(text("The older word for `tool_name`.")),
      tool_call_id: maybe(text()),
    },
  ),
} as const;

export type NativeMessage = FromSchema<typeof messageSchema>;

export const nativeChatSchema = {
  title: "NativeChat",
  ...open(
    { model },
    {
      ...generating,
      messages: maybe(list(messageSchema, "Empty or absent: load, or with keep_alive 0 unload.")),
      tools: maybe(list(object)),
    },
  ),
  examples: [{ ...alpha, messages: [{ role: "user", content: "hi" }], stream: false }],
} as const;

export type NativeChat = FromSchema<typeof nativeChatSchema>;

/** The last record of an answer has these. */
const ending = {
  done_reason: text("`stop`, `length`, `load` or `unload`."),
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
} as const;

export const nativeGenerateSchema = {
  title: "NativeGenerate",
  ...open(
    { model },
    {
      ...generating,
      prompt: maybe(text("Empty or absent: load, or with keep_alive 0 unload.")),
      suffix: maybe(text()),
      system: maybe(text()),
      template: maybe(text()),
      raw: maybe(flag()),
      context: maybe({ type: "array", description: "Taken and left alone." }),
      images,
    },
  ),
  examples: [{ ...alpha, prompt: "hi", stream: false }],
} as const;

export type NativeGenerate = FromSchema<typeof nativeGenerateSchema>;

export const nativeGenerateRecordSchema = {
  title: "NativeGenerateRecord",
  description: recordDescription,
  ...open({ ...record, response: text() }, { thinking: text(), ...ending }),
} as const;

/** Clients of different ages call it `model` or `name`; some send both, the same, or one of them empty. */
const named = {
  model: maybe(text("OWNER/NAME:TAG, or any name that finds one model.")),
  name: maybe(text("The older word for `model`.")),
} as const;

export const nativeModelSchema = { title: "NativeModel", ...open({}, named), examples: [alpha] } as const;

export const nativeShowSchema = {
  title: "NativeShow",
  ...open({}, { ...named, verbose: ignored }),
  examples: [alpha],
} as const;

export const nativePullSchema = {
  title: "NativePull",
  ...open(
    {},
    {
      ...named,
      stream: streaming,
      insecure: ignored,
      keep: maybe(
        flag(
          "Default false. True: the document goes on wanting the model when the client leaves, or the hub is away for long.",
        ),
      ),
    },
  ),
  examples: [alpha],
} as const;

export const nativePullRecordSchema = {
  title: "NativePullRecord",
  description: "One per line. The last says `success`.",
  ...open(
    { status: text() },
    {
      digest: text("`sha256:` and hex: one file."),
      total: integer("Bytes."),
      completed: integer("Bytes."),
      error: text("Instead of `status`, where it fails after the first line."),
    },
  ),
} as const;

export type NativePullRecord = FromSchema<typeof nativePullRecordSchema>;

export const nativeCopySchema = {
  title: "NativeCopy",
  ...open({ source: model, destination: { ...text("Another name for the same model."), minLength: 1 } }),
  examples: [{ source: alpha.model, destination: "alpha" }],
} as const;

export const nativeEmbedSchema = {
  title: "NativeEmbed",
  ...open(
    { model },
    {
      input: texts,
      truncate: maybe(flag("Default true: a text that is too long is cut.")),
      dimensions: maybe({ ...integer("The vectors are cut to so many."), minimum: 0 }),
      keep_alive,
      options,
    },
  ),
  examples: [{ ...alpha, input: ["hi"] }],
} as const;

export type NativeEmbed = FromSchema<typeof nativeEmbedSchema>;

const vector = list(number());

export const nativeEmbeddedSchema = {
  title: "NativeEmbedded",
  ...open(
    { model: text(), embeddings: list(vector) },
    { total_duration: integer(), load_duration: integer(), prompt_eval_count: integer() },
  ),
} as const;

export const nativeEmbeddingsSchema = {
  title: "NativeEmbeddings",
  ...open({ model }, { prompt: maybe(text()), keep_alive, options }),
  examples: [{ ...alpha, prompt: "hi" }],
} as const;

export const nativeEmbeddingSchema = { title: "NativeEmbedding", ...open({ embedding: vector }) } as const;

const details = {
  title: "NativeDetails",
  ...open(
    { format: text(), family: text(), parameter_size: text(), quantization_level: text() },
    { parent_model: text(), families: maybe(list(text())), context_length: integer() },
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

export const nativeTagsSchema = { title: "NativeTags", ...open({ models: list(tag) }) } as const;

const loadedModel = open(
  { ...entry, expires_at: text("RFC 3339: when it is unloaded."), size_vram: integer() },
  { context_length: integer() },
);

export const nativePsSchema = { title: "NativePs", ...open({ models: list(loadedModel) }) } as const;

export const nativeShownSchema = {
  title: "NativeShown",
  ...open(
    {
      details,
      model_info: { ...object, description: "The file's metadata: `general.architecture`, `llama.context_length`, …" },
      capabilities: list(text(), "`completion`, `tools`, `insert`, `vision`, `embedding`, `thinking`."),
    },
    {
      license: text(),
      modelfile: text(),
      parameters: text("One `name  value` per line."),
      template: text(),
      modified_at: text("RFC 3339."),
      system: text(),
      projector_info: object,
      memory: needSchema,
    },
  ),
} as const;

export type NativeShown = FromSchema<typeof nativeShownSchema>;

export const nativeVersionSchema = {
  title: "NativeVersion",
  ...open({ version: text("Of Ollama's API as it is spoken here.") }),
} as const;
