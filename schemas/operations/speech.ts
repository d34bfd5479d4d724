// The operations of speech. None of them needs a license key.
import { speechSearchQuerySchema } from "../admin.ts";
import {
  cachedTranscriptionModelsSchema,
  cachedVoicesSchema,
  speechRequestSchema,
  transcriptionFormSchema,
  transcriptionModelsSchema,
  transcriptionSchema,
  voicesSchema,
} from "../speech.ts";
import { body, json, ok } from "./contents.ts";
import { hubErrors } from "./errors.ts";
import type { Operation } from "./operation.ts";

const common = { key: "none" } as const;

export const speechOperations: readonly Operation[] = [
  {
    ...common,
    id: "transcribe",
    family: "compat",
    method: "POST",
    path: "/audio/transcriptions",
    summary: "Turn speech into text",
    description:
      "The form is passed on to the engine as it comes, with whatever further fields the engine knows (`language`, `response_format`).",
    request: body({ mediaType: "multipart/form-data", schema: transcriptionFormSchema }),
    responses: [ok("What was said.", json(transcriptionSchema))],
    errors: [
      "speech_off",
      "busy",
      "body_too_large",
      "upload_stalled",
      "sound_too_long",
      "engine_missing",
      "engine_failed",
      "upstream_failed",
      "transcription_model_not_found",
      ...hubErrors,
    ],
    anyMediaType: true,
  },
  {
    ...common,
    id: "speak",
    family: "compat",
    method: "POST",
    path: "/audio/speech",
    summary: "Turn text into speech",
    description: "A voice that is not loaded is downloaded where needed, and the engine is started anew with it.",
    request: body(json(speechRequestSchema)),
    responses: [ok("The audio.", { mediaType: "audio/wav", schema: { type: "string", format: "binary" } })],
    errors: [
      "speech_off",
      "busy",
      "engine_missing",
      "engine_failed",
      "upstream_failed",
      "voice_not_found",
      "suspended",
      ...hubErrors,
    ],
  },
  {
    ...common,
    id: "cachedVoices",
    family: "own",
    method: "GET",
    path: "/api/tts/voices/cached",
    summary: "The downloaded voices",
    responses: [ok("Their ids.", json(cachedVoicesSchema))],
    errors: ["invalid_request", "speech_off"],
  },
  {
    ...common,
    id: "searchVoices",
    family: "own",
    method: "GET",
    path: "/api/tts/voices/search",
    summary: "Search the voices",
    query: speechSearchQuerySchema,
    responses: [ok("At most 50 that match by id, speaker or language.", json(voicesSchema))],
    errors: ["speech_off", ...hubErrors],
  },
  {
    ...common,
    id: "cachedTranscriptionModels",
    family: "own",
    method: "GET",
    path: "/api/stt/models/cached",
    summary: "The downloaded transcription models",
    responses: [ok("The names of their files.", json(cachedTranscriptionModelsSchema))],
    errors: ["invalid_request", "speech_off"],
  },
  {
    ...common,
    id: "searchTranscriptionModels",
    family: "own",
    method: "GET",
    path: "/api/stt/models/search",
    summary: "Search the transcription models",
    query: speechSearchQuerySchema,
    responses: [ok("Those whose file's name matches.", json(transcriptionModelsSchema))],
    errors: ["speech_off", ...hubErrors],
  },
];
