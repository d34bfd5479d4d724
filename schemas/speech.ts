// Bodies of the speech routes.
import type { FromSchema } from "json-schema-to-ts";

export const speechRequestSchema = {
  title: "SpeechRequest",
  type: "object",
  required: ["input", "voice"],
  properties: {
    input: { type: "string", minLength: 1, maxLength: 100_000, description: "What to say." },
    voice: {
      type: "string",
      description:
        "A voice's id: `en_US-lessac-medium`, or one of its speakers: `en_GB-vctk-medium:p239`. OpenAI's own names (`alloy`) mean the voice of the document.",
    },
    model: { type: "string", description: "Taken and left alone." },
    speed: { type: "number", minimum: 0.25, maximum: 4, description: "1 is the voice's own pace, 2 twice as fast." },
    response_format: {
      enum: ["wav", "pcm"],
      description:
        "wav where it is left out; pcm is the same sound without a header, 16 bits, little endian, at the rate that the answer's Content-Type names.",
    },
    stream_format: { enum: ["audio"], description: "Sound is sent while it is being made, as it is; not as events." },
  },
  examples: [{ input: "Hello", voice: "en_US-lessac-medium" }],
} as const;

export type SpeechRequest = FromSchema<typeof speechRequestSchema>;

export const transcriptionFormSchema = {
  title: "TranscriptionForm",
  type: "object",
  required: ["file"],
  properties: {
    file: { type: "string", format: "binary", description: "The audio." },
    model: { type: "string" },
  },
} as const;

export const transcriptionSchema = {
  title: "Transcription",
  type: "object",
  required: ["text"],
  properties: { text: { type: "string" } },
  examples: [{ text: "Hello" }],
} as const;

export type Transcription = FromSchema<typeof transcriptionSchema>;

export const cachedVoicesSchema = {
  title: "CachedVoices",
  type: "object",
  required: ["voices"],
  properties: { voices: { type: "array", items: { type: "string" } } },
  examples: [{ voices: ["en_US-lessac-medium"] }],
} as const;

export type CachedVoices = FromSchema<typeof cachedVoicesSchema>;

export const voicesSchema = {
  title: "Voices",
  type: "array",
  maxItems: 50,
  items: {
    title: "Voice",
    type: "object",
    required: ["key", "name", "languageCode", "languageName", "country", "quality", "numSpeakers", "sizeBytes"],
    properties: {
      key: { type: "string", description: "The voice's id." },
      name: { type: "string", description: "The speaker." },
      languageCode: { type: "string" },
      languageName: { type: "string" },
      country: { type: "string" },
      quality: { type: "string" },
      numSpeakers: { type: "integer" },
      sizeBytes: { type: "integer" },
    },
  },
  examples: [
    [
      {
        key: "en_US-lessac-medium",
        name: "lessac",
        languageCode: "en_US",
        languageName: "English",
        country: "United States",
        quality: "medium",
        numSpeakers: 1,
        sizeBytes: 63_201_294,
      },
    ],
  ],
} as const;

export type Voices = FromSchema<typeof voicesSchema>;

export const cachedTranscriptionModelsSchema = {
  title: "CachedTranscriptionModels",
  type: "object",
  required: ["models"],
  properties: { models: { type: "array", items: { type: "string", description: "A file's name." } } },
  examples: [{ models: ["ggml-base.en.bin"] }],
} as const;

export type CachedTranscriptionModels = FromSchema<typeof cachedTranscriptionModelsSchema>;

export const transcriptionModelsSchema = {
  title: "TranscriptionModels",
  type: "array",
  items: {
    title: "TranscriptionModel",
    type: "object",
    required: ["path", "size"],
    properties: { path: { type: "string" }, size: { type: "integer", description: "Bytes." } },
  },
  examples: [[{ path: "ggml-base.en.bin", size: 147_964_211 }]],
} as const;

export type TranscriptionModels = FromSchema<typeof transcriptionModelsSchema>;
