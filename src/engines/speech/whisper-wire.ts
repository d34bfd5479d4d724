// The wire of whisper-server: command line, uploads, probes. Starts nothing and keeps no state.
import { basename } from "node:path";
import { Readable } from "node:stream";
import { clientLeftError, GatewayError, reasonOf, systemCode } from "../../core/errors.ts";
import { readAtMost } from "../../core/read-at-most.ts";
import { isEnglishOnly } from "../../speech/transcription-models.ts";
import { request } from "../../undici.ts";

const transcriptionPath = "/v1/audio/transcriptions";
const healthMs = 2_000;
/** Text alone: hours of speech with all their words and times are a few megabytes. */
const answerLimit = 64 * 1024 * 1024;

export interface Upload {
  /** As the client sent it: `multipart/form-data; boundary=…`. */
  readonly contentType: string;
  /** Bytes; null where the client did not say. */
  readonly contentLength: number | null;
  /** Not read faster than the engine takes it. */
  readonly body: AsyncIterable<Uint8Array>;
}

export interface EngineAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

/**
 * `prefix`: the only path that it serves. It has no keys, allows every origin, and loads another model for any client that
 * knows the path. `convertIn`: a folder; null where there is no ffmpeg.
 */
export function whisperArguments(port: number, model: string, prefix: string, convertIn: string | null): string[] {
  const where = ["--host", "127.0.0.1", "--port", String(port), "--request-path", prefix];
  // Its default is English; a request may still name its language.
  const language = isEnglishOnly(basename(model)) ? [] : ["--language", "auto"];
  const convert = convertIn === null ? [] : ["--convert", "--tmp-dir", convertIn];
  return ["--model", model, ...where, "--inference-path", transcriptionPath, ...language, ...convert];
}

/** The port opens when the model is loaded; a version without /health answers 404 then. It answers while it works, too. */
export async function isReady(base: string, signal: AbortSignal): Promise<boolean> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(healthMs)]);
  const answer = await request(`${base}/health`, { reset: true, signal: limit });
  await answer.body.dump();
  return answer.statusCode === 200 || answer.statusCode === 404;
}

/** Throws `cancelled`, `upstream_failed` where the engine does not answer. */
export async function requireAnswer(base: string, signal: AbortSignal): Promise<void> {
  try {
    await isReady(base, signal);
  } catch (cause) {
    if (signal.aborted) throw clientLeftError({ cause });
    throw new GatewayError("upstream_failed", "the transcription engine does not respond", { cause });
  }
}

/** Throws `cancelled`, `upstream_failed` where the engine broke off, and what the upload's own bytes throw. */
export async function sendUpload(
  base: string,
  { contentType, contentLength, body }: Upload,
  signal: AbortSignal,
): Promise<EngineAnswer> {
  let fault: unknown;
  async function* noted(): AsyncGenerator<Uint8Array> {
    try {
      yield* body;
    } catch (error) {
      fault = error;
      throw error;
    }
  }
  try {
    const answer = await request(`${base}${transcriptionPath}`, {
      method: "POST",
      headers: {
        "content-type": contentType,
        ...(contentLength === null ? {} : { "content-length": String(contentLength) }),
      },
      body: Readable.from(noted(), { objectMode: false }),
      // A stream cannot be sent a second time over a connection that turns out to be closed.
      reset: true,
      // An hour of speech is silent for minutes.
      headersTimeout: 0,
      bodyTimeout: 0,
      signal,
    });
    const received = await readAtMost(answer.body, answerLimit, endless);
    const type = answer.headers["content-type"];
    return { status: answer.statusCode, contentType: String(type ?? "application/json"), body: received };
  } catch (error) {
    if (fault instanceof GatewayError) throw fault;
    if (signal.aborted || isCutUpload(fault ?? error)) throw clientLeftError({ cause: error });
    if (error instanceof GatewayError) throw error;
    throw new GatewayError("upstream_failed", `the transcription engine broke off (${reasonOf(error)})`, {
      cause: error,
    });
  }
}

const emptyBoundary = "is-it-free";
const emptyForm = `--${emptyBoundary}\r\nContent-Disposition: form-data; name="model"\r\n\r\n\r\n--${emptyBoundary}--\r\n`;

/** A form without sound is refused at once, but queues behind the current upload. Throws if the connection breaks. */
export async function untilRefused(base: string, signal: AbortSignal): Promise<void> {
  const answer = await request(`${base}${transcriptionPath}`, {
    method: "POST",
    headers: { "content-type": `multipart/form-data; boundary=${emptyBoundary}` },
    body: emptyForm,
    reset: true,
    signal,
  });
  await answer.body.dump();
}

/** Node's errors for a request whose client has disconnected. */
function isCutUpload(error: unknown): boolean {
  const code = systemCode(error);
  const message = error instanceof Error ? error.message : "";
  return (code === "ECONNRESET" && message === "aborted") || code === "ERR_STREAM_PREMATURE_CLOSE";
}

function endless(): GatewayError {
  return new GatewayError("upstream_failed", `the transcription engine sends more than ${answerLimit} bytes`);
}
