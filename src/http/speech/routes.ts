// The speech routes: two belong to the compatible family, the others are the gateway's own. None needs a license key.

import type { FastifyInstance, FastifyRequest } from "fastify";
import { noQuerySchema, speechSearchQuerySchema } from "../../../schemas/admin.ts";
import { ok } from "../../../schemas/route.ts";
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
import { clientLeft } from "../server/call.ts";
import { installFamily } from "../server/family.ts";
import { parseJsonBody } from "../server/json-body.ts";
import { installRoutes, routesOf } from "../server/route.ts";
import { hubErrors } from "../server/route-errors.ts";
import { type SpeakDeps, speak } from "./speak.ts";
import { type TranscribeDeps, transcribe } from "./transcribe.ts";

export interface SpeechRoutesDeps
  extends Omit<TranscribeDeps, "engines" | "turns">,
    Omit<SpeakDeps, "engines" | "turns"> {
  readonly turns: SpeechTurns;
  readonly engines: TranscribeDeps["engines"] & SpeakDeps["engines"];
  readonly lists: SpeechLists;
  /** Names of the transcription models on disk. */
  readonly cachedModels: () => Promise<readonly string[]>;
}

const { get, post } = routesOf<SpeechRoutesDeps>();

const licenseKey = "none";
const engineErrors = [
  "speech_off",
  "busy",
  "engine_missing",
  "engine_failed",
  "upstream_failed",
  ...hubErrors,
] as const;

const transcribeRoute = post("/audio/transcriptions", {
  config: {
    licenseKey,
    anyMediaType: true,
    errors: [...engineErrors, "body_too_large", "upload_stalled", "sound_too_long", "transcription_model_not_found"],
  },
  operationId: "transcribe",
  summary: "Turn speech into text",
  description:
    "The form is passed on to the engine as it comes, with whatever further fields the engine takes (`language`, `response_format`).",
  body: { content: { "multipart/form-data": { schema: transcriptionFormSchema } } },
  response: ok("The text.", transcriptionSchema),
  refuse: ({ turns }, request) => {
    // First, whatever is wrong with the request.
    turns.requireOn("transcription");
    requireForm(request);
  },
  handler: async (deps, request, reply) => {
    await transcribe(deps, request, reply);
    return reply;
  },
});

const speakRoute = post("/audio/speech", {
  config: { licenseKey, errors: [...engineErrors, "voice_not_found", "suspended", "file_managed", "cache_read_only"] },
  operationId: "speak",
  summary: "Turn text into speech",
  description: "A voice that is not loaded is downloaded if needed, and the engine is restarted with it.",
  body: speechRequestSchema,
  response: ok("The audio.", { content: { "audio/wav": { schema: { type: "string", format: "binary" } } } }),
  refuse: ({ turns }) => turns.requireOn("synthesis"),
  parse: (body: Buffer | undefined) => withoutNulls(parseJsonBody(body)),
  handler: async (deps, request, reply) => {
    await speak(deps, request.body, request, reply);
    return reply;
  },
});

export const audioRoutes = [transcribeRoute, speakRoute];

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

const refuse = ({ turns }: SpeechRoutesDeps): void => turns.requireOn();
const cached = { config: { licenseKey, errors: ["speech_off"] }, querystring: noQuerySchema, refuse } as const;
const searched = {
  config: { licenseKey, errors: ["speech_off", ...hubErrors] },
  querystring: speechSearchQuerySchema,
  refuse,
} as const;

/** Voices and transcription models. */
export const speechRoutes = [
  get("/api/tts/voices/cached", {
    ...cached,
    operationId: "cachedVoices",
    summary: "List the downloaded voices",
    response: ok("Their ids.", cachedVoicesSchema),
    handler: async ({ voices }) => ({ voices: await voices.cachedVoices() }),
  }),
  get("/api/tts/voices/search", {
    ...searched,
    operationId: "searchVoices",
    summary: "Search the voices",
    response: ok("At most 50 that match by id, speaker or language.", voicesSchema),
    handler: async ({ lists }, { query: { q = "" } }, reply) => searchVoices(await lists.voices(clientLeft(reply)), q),
  }),
  get("/api/stt/models/cached", {
    ...cached,
    operationId: "cachedTranscriptionModels",
    summary: "List the downloaded transcription models",
    response: ok("The names of their files.", cachedTranscriptionModelsSchema),
    handler: async ({ cachedModels }) => ({ models: await cachedModels() }),
  }),
  get("/api/stt/models/search", {
    ...searched,
    operationId: "searchTranscriptionModels",
    summary: "Search the transcription models",
    response: ok("Those whose file name matches.", transcriptionModelsSchema),
    handler: async ({ lists }, { query: { q = "" } }, reply) =>
      searchModels(await lists.modelFiles(clientLeft(reply)), q),
  }),
];

export function installSpeech(app: FastifyInstance, deps: SpeechRoutesDeps): void {
  installFamily(app, "gateway");
  installRoutes(app, "own", speechRoutes, deps);
}
