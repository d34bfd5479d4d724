// Schemas of the speech routes.
import { noQuerySchema, speechSearchQuerySchema } from "../admin.ts";
import { json, ok } from "../route.ts";
import {
  cachedTranscriptionModelsSchema,
  cachedVoicesSchema,
  speechRequestSchema,
  transcriptionFormSchema,
  transcriptionModelsSchema,
  transcriptionSchema,
  voicesSchema,
} from "../speech.ts";

const binary = { type: "string", format: "binary" } as const;

export const speechSchemas = {
  transcribe: {
    operationId: "transcribe",
    summary: "Turn speech into text",
    description:
      "The form is passed on to the engine as it comes, with whatever further fields the engine takes (`language`, `response_format`).",
    body: { content: { "multipart/form-data": { schema: transcriptionFormSchema } } },
    response: ok("The text.", json(transcriptionSchema)),
  },
  speak: {
    operationId: "speak",
    summary: "Turn text into speech",
    description: "A voice that is not loaded is downloaded if needed, and the engine is restarted with it.",
    body: speechRequestSchema,
    response: ok("The audio.", { content: { "audio/wav": { schema: binary } } }),
  },
  cachedVoices: {
    operationId: "cachedVoices",
    summary: "List the downloaded voices",
    querystring: noQuerySchema,
    response: ok("Their ids.", json(cachedVoicesSchema)),
  },
  searchVoices: {
    operationId: "searchVoices",
    summary: "Search the voices",
    querystring: speechSearchQuerySchema,
    response: ok("At most 50 that match by id, speaker or language.", json(voicesSchema)),
  },
  cachedTranscriptionModels: {
    operationId: "cachedTranscriptionModels",
    summary: "List the downloaded transcription models",
    querystring: noQuerySchema,
    response: ok("The names of their files.", json(cachedTranscriptionModelsSchema)),
  },
  searchTranscriptionModels: {
    operationId: "searchTranscriptionModels",
    summary: "Search the transcription models",
    querystring: speechSearchQuerySchema,
    response: ok("Those whose file name matches.", json(transcriptionModelsSchema)),
  },
} as const;
