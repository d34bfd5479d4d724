// The speech routes: two belong to the compatible family, the others are the gateway's own. None needs a license key.
import type { FastifyInstance, FastifyRequest, onRequestAsyncHookHandler } from "fastify";
import { noQuerySchema, type SpeechSearchQuery, speechSearchQuerySchema } from "../../../schemas/admin.ts";
import { type SpeechRequest, speechRequestSchema } from "../../../schemas/speech.ts";
import type { SpeechLists } from "../../cache/download/speech-lists.ts";
import { GatewayError } from "../../core/errors.ts";
import type { SpeechKind } from "../../plan/observed.ts";
import { searchModels } from "../../speech/transcription-models.ts";
import { isRecord, searchVoices } from "../../speech/voices.ts";
import { clientLeft } from "../server/client-left.ts";
import { installFamily } from "../server/family.ts";
import { parseJsonBody } from "../server/json-body.ts";
import { bodyCheck, queryCheck } from "../server/validate.ts";
import { installPatience } from "./patience.ts";
import { type SpeakDeps, speak } from "./speak.ts";
import { type TranscribeDeps, transcribe } from "./transcribe.ts";
import type { SpeechTurns } from "./turns.ts";

export interface SpeechRoutesDeps
  extends Omit<TranscribeDeps, "engines" | "turns">,
    Omit<SpeakDeps, "engines" | "turns"> {
  readonly turns: SpeechTurns;
  readonly engines: TranscribeDeps["engines"] & SpeakDeps["engines"];
  readonly lists: SpeechLists;
  /** Names of the transcription models on disk. */
  readonly cachedModels: () => Promise<readonly string[]>;
}

const config = { licenseKey: "none" } as const;

const speechRequest = bodyCheck<SpeechRequest>(speechRequestSchema);
const searchQuery = queryCheck<SpeechSearchQuery>(speechSearchQuerySchema);
const noQuery = queryCheck<object>(noQuerySchema);

/** Whatever is wrong with a request, that speech is off is said first. */
function whereOn({ turns }: SpeechRoutesDeps, kind?: SpeechKind): onRequestAsyncHookHandler {
  return async () => turns.requireOn(kind);
}

/** Below the compatible family's prefix. */
export function audioRoutes(app: FastifyInstance, deps: SpeechRoutesDeps): void {
  installFamily(app, "compat");
  void app.register((forms, _options, done) => {
    // An upload may be large: it is left where it is until the engine takes it.
    forms.addContentTypeParser("multipart/form-data", (_request, _payload, parsed) => parsed(null));
    const onRequest = [whereOn(deps, "transcription"), requireForm];
    forms.post("/audio/transcriptions", { config, onRequest }, async (request, reply) => {
      await transcribe(deps, request, reply);
      return reply;
    });
    done();
  });
  const onRequest = whereOn(deps, "synthesis");
  app.post<{ Body: Buffer }>("/audio/speech", { config, onRequest }, async (request, reply) => {
    await speak(deps, speechRequest(withoutNulls(parseJsonBody(request.body))), request, reply);
    return reply;
  });
}

/** Clients of typed languages send null for what they leave out. */
function withoutNulls(body: unknown): unknown {
  return isRecord(body) ? Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null)) : body;
}

/** Before the body is read. */
async function requireForm({ headers }: FastifyRequest): Promise<void> {
  const isForm = /^multipart\/form-data\s*(;|$)/i.test(headers["content-type"] ?? "");
  if (!isForm) throw new GatewayError("unsupported_media_type", "a transcription takes multipart/form-data");
}

/** Voices and transcription models. */
export function speechRoutes(app: FastifyInstance, deps: SpeechRoutesDeps): void {
  const { lists } = deps;
  installFamily(app, "gateway");
  installPatience(app);
  const on = { config, onRequest: whereOn(deps) };
  app.get("/api/tts/voices/cached", on, async (request) => {
    noQuery(request.query);
    return { voices: await deps.voices.cachedVoices() };
  });
  app.get("/api/stt/models/cached", on, async (request) => {
    noQuery(request.query);
    return { models: await deps.cachedModels() };
  });
  app.get("/api/tts/voices/search", on, async (request, reply) => {
    const { q = "" } = searchQuery(request.query);
    return searchVoices(await lists.voices(clientLeft(reply)), q);
  });
  app.get("/api/stt/models/search", on, async (request, reply) => {
    const { q = "" } = searchQuery(request.query);
    return searchModels(await lists.modelFiles(clientLeft(reply)), q);
  });
}
