// The speech routes: two belong to the compatible family, the others are the gateway's own. The interface's six need no license key.
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { noQuerySchema, type SpeechSearchQuery, speechSearchQuerySchema } from "../../../schemas/own.ts";
import {
  type SpeechRequest,
  speechRequestSchema,
  type VoiceCardQuery,
  voiceCardQuerySchema,
} from "../../../schemas/speech.ts";
import { GatewayError } from "../../core/errors.ts";
import type { SpeechLists } from "../../hub/speech-files.ts";
import type { VoiceCard } from "../../hub/voice-cards.ts";
import { searchModels } from "../../speech/transcription-models.ts";
import { searchVoices } from "../../speech/voices.ts";
import { clientLeft } from "../client-left.ts";
import { installFamily } from "../family.ts";
import { parseJsonBody } from "../json-body.ts";
import { bodyCheck, queryCheck } from "../validate.ts";
import { installPatience } from "./patience.ts";
import { type SpeakDeps, speak } from "./speak.ts";
import { type TranscribeDeps, transcribe } from "./transcribe.ts";

export interface SpeechRoutesDeps extends Omit<TranscribeDeps, "engines">, Omit<SpeakDeps, "engines"> {
  readonly engines: TranscribeDeps["engines"] & SpeakDeps["engines"];
  readonly lists: SpeechLists;
  /** Ids and names of what is on disk. */
  readonly cachedVoices: () => Promise<readonly string[]>;
  readonly cachedModels: () => Promise<readonly string[]>;
  readonly voiceCard: (voice: string, signal: AbortSignal) => Promise<VoiceCard>;
}

const config = { licenseKey: "none" } as const;

const speechRequest = bodyCheck<SpeechRequest>(speechRequestSchema);
const searchQuery = queryCheck<SpeechSearchQuery>(speechSearchQuerySchema);
const cardQuery = queryCheck<VoiceCardQuery>(voiceCardQuerySchema);
const noQuery = queryCheck<object>(noQuerySchema);

/** Below the compatible family's prefix. */
export function audioRoutes(app: FastifyInstance, deps: SpeechRoutesDeps): void {
  installFamily(app, "compat");
  void app.register((forms, _options, done) => {
    // An upload may be large: it is left where it is until the engine takes it.
    forms.addContentTypeParser("multipart/form-data", (_request, _payload, parsed) => parsed(null));
    forms.post("/audio/transcriptions", { config, onRequest: requireForm }, async (request, reply) => {
      await transcribe(deps, request, reply);
      return reply;
    });
    done();
  });
  app.post<{ Body: Buffer }>("/audio/speech", { config }, async (request, reply) => {
    await speak(deps, speechRequest(parseJsonBody(request.body)), request, reply);
    return reply;
  });
}

/** Before the body is read. */
function requireForm({ headers }: FastifyRequest, _reply: FastifyReply, done: (error?: Error) => void): void {
  const isForm = /^multipart\/form-data\s*(;|$)/i.test(headers["content-type"] ?? "");
  done(isForm ? undefined : new GatewayError("unsupported_media_type", "a transcription takes multipart/form-data"));
}

/** Voices and transcription models. */
export function speechRoutes(app: FastifyInstance, deps: SpeechRoutesDeps): void {
  const { use, lists } = deps;
  installFamily(app, "gateway");
  installPatience(app);
  app.get("/api/tts/voices/cached", { config }, async (request) => {
    noQuery(request.query);
    use.requireOn();
    return { voices: await deps.cachedVoices() };
  });
  app.get("/api/stt/models/cached", { config }, async (request) => {
    noQuery(request.query);
    use.requireOn();
    return { models: await deps.cachedModels() };
  });
  app.get("/api/tts/voices/search", { config }, async (request, reply) => {
    const { q = "" } = searchQuery(request.query);
    use.requireOn();
    return searchVoices(await lists.voices(clientLeft(reply)), q);
  });
  app.get("/api/tts/voices/card", async (request, reply) => {
    const { voice } = cardQuery(request.query);
    use.requireOn();
    return deps.voiceCard(voice, clientLeft(reply));
  });
  app.get("/api/stt/models/search", { config }, async (request, reply) => {
    const { q = "" } = searchQuery(request.query);
    use.requireOn();
    return searchModels(await lists.modelFiles(clientLeft(reply)), q);
  });
}
