// The speech routes: two belong to the compatible family, the others are the gateway's own. None needs a license key.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { noQuerySchema, speechSearchQuerySchema } from "../../../schemas/admin.ts";
import { json, ok } from "../../../schemas/route.ts";
import {
  cachedTranscriptionModelsSchema,
  cachedVoicesSchema,
  speechRequestSchema,
  transcriptionFormSchema,
  transcriptionModelsSchema,
  transcriptionSchema,
  voicesSchema,
} from "../../../schemas/speech.ts";
import type { SpeechLists } from "../../cache/download/speech-lists.ts";
import type { SpeechTurns } from "../../commands/speech/turns.ts";
import { GatewayError } from "../../core/errors.ts";
import { isJsonObject } from "../../core/json.ts";
import { searchModels } from "../../speech/transcription-models.ts";
import { searchVoices } from "../../speech/voices.ts";
import { clientLeft } from "../server/client-left.ts";
import { installFamily } from "../server/family.ts";
import { parseJsonBody } from "../server/json-body.ts";
import { installRoutes, type Route, route } from "../server/route.ts";
import { hubErrors } from "../server/route-errors.ts";
import { type SpeakDeps, speak } from "./speak.ts";
import { type TranscribeDeps, transcribe } from "./transcribe.ts";
import { installPatience } from "./upload.ts";

export interface SpeechRoutesDeps
  extends Omit<TranscribeDeps, "engines" | "turns">,
    Omit<SpeakDeps, "engines" | "turns"> {
  readonly turns: SpeechTurns;
  readonly engines: TranscribeDeps["engines"] & SpeakDeps["engines"];
  readonly lists: SpeechLists;
  /** Names of the transcription models on disk. */
  readonly cachedModels: () => Promise<readonly string[]>;
}

const licenseKey = "none";
const engineErrors = [
  "speech_off",
  "busy",
  "engine_missing",
  "engine_failed",
  "upstream_failed",
  ...hubErrors,
] as const;

const transcribeRoute: Route<SpeechRoutesDeps> = route({
  method: "POST",
  url: "/audio/transcriptions",
  config: {
    licenseKey,
    anyMediaType: true,
    errors: [...engineErrors, "body_too_large", "upload_stalled", "sound_too_long", "transcription_model_not_found"],
  },
  schema: {
    operationId: "transcribe",
    summary: "Turn speech into text",
    description:
      "The form is passed on to the engine as it comes, with whatever further fields the engine takes (`language`, `response_format`).",
    body: { content: { "multipart/form-data": { schema: transcriptionFormSchema } } },
    response: ok("The text.", json(transcriptionSchema)),
  },
  refuse: ({ turns }: SpeechRoutesDeps, request) => {
    // First, whatever is wrong with the request.
    turns.requireOn("transcription");
    requireForm(request);
  },
  handler: async (deps: SpeechRoutesDeps, request, reply) => {
    await transcribe(deps, request, reply);
    return reply;
  },
});

const speakRoute: Route<SpeechRoutesDeps> = route({
  method: "POST",
  url: "/audio/speech",
  config: { licenseKey, errors: [...engineErrors, "voice_not_found", "suspended"] },
  schema: {
    operationId: "speak",
    summary: "Turn text into speech",
    description: "A voice that is not loaded is downloaded if needed, and the engine is restarted with it.",
    body: speechRequestSchema,
    response: ok("The audio.", { content: { "audio/wav": { schema: { type: "string", format: "binary" } } } }),
  },
  refuse: ({ turns }: SpeechRoutesDeps) => turns.requireOn("synthesis"),
  parse: (body: Buffer | undefined) => withoutNulls(parseJsonBody(body)),
  handler: async (deps: SpeechRoutesDeps, request, reply) => {
    await speak(deps, request.body, request, reply);
    return reply;
  },
});

export const audioRoutes: readonly Route<SpeechRoutesDeps>[] = [transcribeRoute, speakRoute];

/** Below the compatible family's prefix. */
export function installAudio(app: FastifyInstance, deps: SpeechRoutesDeps): void {
  installFamily(app, "compat");
  installRoutes(app, "compat", [speakRoute], deps);
  void app.register((forms, _options, done) => {
    // An upload may be large: it is left where it is until the engine takes it.
    forms.addContentTypeParser("multipart/form-data", (_request, _payload, parsed) => parsed(null));
    installRoutes(forms, "compat", [transcribeRoute], deps);
    done();
  });
}

/** Clients of typed languages send null for what they leave out. */
function withoutNulls(body: unknown): unknown {
  return isJsonObject(body) ? Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null)) : body;
}

/** Before the body is read. */
function requireForm({ headers }: FastifyRequest): void {
  const isForm = /^multipart\/form-data\s*(;|$)/i.test(headers["content-type"] ?? "");
  if (!isForm) throw new GatewayError("unsupported_media_type", "a transcription takes multipart/form-data");
}

const cached = {
  method: "GET",
  config: { licenseKey, errors: ["invalid_request", "speech_off"] },
  refuse: ({ turns }: SpeechRoutesDeps) => turns.requireOn(),
} as const;
const searched = { ...cached, config: { licenseKey, errors: ["speech_off", ...hubErrors] } } as const;

/** Voices and transcription models. */
export const speechRoutes: readonly Route<SpeechRoutesDeps>[] = [
  route({
    ...cached,
    url: "/api/tts/voices/cached",
    schema: {
      operationId: "cachedVoices",
      summary: "List the downloaded voices",
      querystring: noQuerySchema,
      response: ok("Their ids.", json(cachedVoicesSchema)),
    },
    handler: async ({ voices }: SpeechRoutesDeps) => ({ voices: await voices.cachedVoices() }),
  }),
  route({
    ...searched,
    url: "/api/tts/voices/search",
    schema: {
      operationId: "searchVoices",
      summary: "Search the voices",
      querystring: speechSearchQuerySchema,
      response: ok("At most 50 that match by id, speaker or language.", json(voicesSchema)),
    },
    handler: async ({ lists }: SpeechRoutesDeps, { query: { q = "" } }, reply) =>
      searchVoices(await lists.voices(clientLeft(reply)), q),
  }),
  route({
    ...cached,
    url: "/api/stt/models/cached",
    schema: {
      operationId: "cachedTranscriptionModels",
      summary: "List the downloaded transcription models",
      querystring: noQuerySchema,
      response: ok("The names of their files.", json(cachedTranscriptionModelsSchema)),
    },
    handler: async ({ cachedModels }: SpeechRoutesDeps) => ({ models: await cachedModels() }),
  }),
  route({
    ...searched,
    url: "/api/stt/models/search",
    schema: {
      operationId: "searchTranscriptionModels",
      summary: "Search the transcription models",
      querystring: speechSearchQuerySchema,
      response: ok("Those whose file name matches.", json(transcriptionModelsSchema)),
    },
    handler: async ({ lists }: SpeechRoutesDeps, { query: { q = "" } }, reply) =>
      searchModels(await lists.modelFiles(clientLeft(reply)), q),
  }),
];

export function installSpeech(app: FastifyInstance, deps: SpeechRoutesDeps): void {
  installFamily(app, "gateway");
  installPatience(app);
  installRoutes(app, "own", speechRoutes, deps);
}
