// The six speech routes: two belong to the compatible family, four are the gateway's own. Their requests are checked; nothing
// is behind them yet, and each says so.
import type { FastifyInstance } from "fastify";
import { noQuerySchema, type SpeechSearchQuery, speechSearchQuerySchema } from "../../../schemas/own.ts";
import { type SpeechRequest, speechRequestSchema } from "../../../schemas/speech.ts";
import { GatewayError } from "../../core/errors.ts";
import { installFamily } from "../family.ts";
import { faultText, jsonFault } from "../json-fault.ts";
import { bodyCheck, queryCheck } from "../validate.ts";

const config = { licenseKey: "none" } as const;

const speechRequest = bodyCheck<SpeechRequest>(speechRequestSchema);
const searchQuery = queryCheck<SpeechSearchQuery>(speechSearchQuerySchema);
const noQuery = queryCheck<object>(noQuerySchema);

function speechOff(): GatewayError {
  return new GatewayError("speech_off", "speech is off, and cannot be turned on in this version yet");
}

/** Below the compatible family's prefix. */
export function audioRoutes(app: FastifyInstance): void {
  installFamily(app, "compat");
  // An upload may be large: it is left where it is.
  app.addContentTypeParser("multipart/form-data", (_request, _payload, done) => done(null));
  app.post(
    "/audio/transcriptions",
    {
      config,
      // Before the body is read.
      onRequest: (request, _reply, done) => {
        const type = request.headers["content-type"] ?? "";
        const isForm = /^multipart\/form-data\s*(;|$)/i.test(type);
        done(
          isForm ? undefined : new GatewayError("unsupported_media_type", "a transcription takes multipart/form-data"),
        );
      },
    },
    () => {
      throw speechOff();
    },
  );
  app.post<{ Body: Buffer }>("/audio/speech", { config }, (request) => {
    speechRequest(parsed(request.body));
    throw speechOff();
  });
}

/** Voices and transcription models. */
export function speechRoutes(app: FastifyInstance): void {
  installFamily(app, "gateway");
  for (const path of ["/api/tts/voices/cached", "/api/stt/models/cached"]) {
    app.get(path, { config }, (request) => {
      noQuery(request.query);
      throw speechOff();
    });
  }
  for (const path of ["/api/tts/voices/search", "/api/stt/models/search"]) {
    app.get(path, { config }, (request) => {
      searchQuery(request.query);
      throw speechOff();
    });
  }
}

function parsed(body: Buffer | undefined): unknown {
  if (body === undefined || body.length === 0) return undefined;
  const text = body.toString("utf8");
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    const fault = jsonFault(text);
    throw new GatewayError("invalid_request", `the body is no JSON${fault ? `: ${faultText(fault)}` : ""}`);
  }
}
