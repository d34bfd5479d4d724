// Bodies of the speech routes.
import type { FromSchema } from "json-schema-to-ts";
import { integer, list, open, text } from "./shapes.ts";

export const speechRequestSchema = {
  title: "SpeechRequest",
  ...open(
    {
      input: { ...text("What to say."), minLength: 1, maxLength: 100_000 },
      voice: text(
        "A voice's id: `en_US-lessac-medium`, or one of its speakers: `en_GB-vctk-medium:p239`. OpenAI's own names (`alloy`) mean the voice of the document.",
      ),
    },
    {
      model: text("Taken and left alone."),
      speed: { type: "number", minimum: 0.25, maximum: 4, description: "1 is the voice's own pace, 2 twice as fast." },
      response_format: {
        enum: ["wav", "pcm"],
        description:
          "wav where it is left out; pcm is the same sound without a header, 16 bits, little endian, at the rate that the answer's Content-Type names.",
      },
      stream_format: { enum: ["audio"], description: "Sound is sent while it is being made, as it is; not as events." },
    },
  ),
  examples: [{ input: "Hello", voice: "en_US-lessac-medium" }],
} as const;

export type SpeechRequest = FromSchema<typeof speechRequestSchema>;

export const transcriptionFormSchema = {
  title: "TranscriptionForm",
  ...open({ file: { ...text("The audio."), format: "binary" } }, { model: text() }),
} as const;

export const transcriptionSchema = { title: "Transcription", ...open({ text: text() }) } as const;

export type Transcription = FromSchema<typeof transcriptionSchema>;

export const cachedVoicesSchema = { title: "CachedVoices", ...open({ voices: list(text()) }) } as const;

export type CachedVoices = FromSchema<typeof cachedVoicesSchema>;

export const voicesSchema = {
  title: "Voices",
  type: "array",
  maxItems: 50,
  items: {
    title: "Voice",
    ...open({
      key: text("The voice's id."),
      name: text("The speaker."),
      languageCode: text(),
      languageName: text(),
      country: text(),
      quality: text(),
      numSpeakers: integer(),
      sizeBytes: integer(),
    }),
  },
} as const;

export type Voices = FromSchema<typeof voicesSchema>;

export const cachedTranscriptionModelsSchema = {
  title: "CachedTranscriptionModels",
  ...open({ models: list(text("A file's name.")) }),
} as const;

export type CachedTranscriptionModels = FromSchema<typeof cachedTranscriptionModelsSchema>;

export const transcriptionModelsSchema = {
  title: "TranscriptionModels",
  type: "array",
  items: { title: "TranscriptionModel", ...open({ path: text(), size: integer("Bytes.") }) },
} as const;

export type TranscriptionModels = FromSchema<typeof transcriptionModelsSchema>;
