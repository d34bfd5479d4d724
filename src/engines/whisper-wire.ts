// What is said to a whisper-server and what it answers: its command line, an upload, questions about itself.
// Starts nothing and keeps nothing.
import { basename } from "node:path";
import { Readable } from "node:stream";
import { type Dispatcher, request } from "undici";
import { GatewayError, systemCode } from "../core/errors.ts";
import { readAtMost } from "../core/read-at-most.ts";
import { type FormWatch, formType, noBoundary } from "../speech/form-watch.ts";
import { isEnglishOnly } from "../speech/transcription-models.ts";

const transcriptionPath = "/v1/audio/transcriptions";
const healthMs = 2_000;
/** Text alone: hours of speech with all their words and times are a few megabytes. */
const answerLimit = 64 * 1024 * 1024;

export interface Upload {
  /** As the client sent it: `multipart/form-data; boundary=…`. */
  readonly contentType: string;
  /** Bytes; null where the client did not say. */
  readonly contentLength: number | null;
  /** Asked for when its turn comes, and not read faster than the engine takes it. */
  body(): AsyncIterable<Uint8Array>;
  /** Nobody waits any more for its turn to come. */
  readonly waiting: AbortSignal;
  /** Nobody waits any more for the answer. */
  readonly signal: AbortSignal;
}

interface WhisperStart {
  readonly port: number;
  /** Absolute. */
  readonly model: string;
  /** A folder; null where there is no ffmpeg. */
  readonly convertIn: string | null;
  readonly prefix: string;
}

interface Answer {
  readonly status: number;
  readonly contentType: string;
  readonly body: Buffer;
}

interface Server {
  /** `http://127.0.0.1:PORT/SECRET` */
  readonly base: string;
  readonly dispatcher: Dispatcher;
}

/**
 * `prefix`: a path below which alone it answers. It asks for no key, lets every web page ask, and takes another model from
 * whoever knows where to say so.
 */
export function whisperArguments({ port, model, convertIn, prefix }: WhisperStart): string[] {
  return [
    "--model",
    model,
    "--host",
    "127.0.0.1",
    "--port",
    String(port),
    "--request-path",
    prefix,
    "--inference-path",
    transcriptionPath,
    // It takes everything for English otherwise; a request may still name its language.
    ...(isEnglishOnly(basename(model)) ? [] : ["--language", "auto"]),
    ...(convertIn === null ? [] : ["--convert", "--tmp-dir", convertIn]),
  ];
}

/** The port opens when the model is loaded; a version without /health answers 404 then. It answers while it works, too. */
export async function isReady(base: string, signal: AbortSignal): Promise<boolean> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(healthMs)]);
  const answer = await request(`${base}/health`, { reset: true, signal: limit });
  await answer.body.dump();
  return answer.statusCode === 200 || answer.statusCode === 404;
}

/**
 * Sends an upload and shows it to `watch` as it goes by. Throws `cancelled`, `upstream_failed`, with a cause where the
 * engine broke off, and what the upload's own bytes throw.
 */
export async function sendUpload(
  { base, dispatcher }: Server,
  upload: Upload,
  boundary: string,
  watch: FormWatch,
): Promise<Answer> {
  let fault: unknown;
  async function* watched(): AsyncGenerator<Uint8Array> {
    try {
      for await (const chunk of upload.body()) {
        watch.see(chunk);
        yield chunk;
      }
    } catch (error) {
      fault = error;
      throw error;
    }
  }
  try {
    const answer = await request(`${base}${transcriptionPath}`, {
      dispatcher,
      method: "POST",
      headers: {
        "content-type": formType(boundary),
        ...(upload.contentLength === null ? {} : { "content-length": String(upload.contentLength) }),
      },
      body: Readable.from(watched(), { objectMode: false }),
      // A stream cannot be sent a second time over a connection that turns out to be closed.
      reset: true,
      signal: upload.signal,
    });
    const contentType = answer.headers["content-type"];
    const body = await readAtMost(answer.body, answerLimit, endless);
    return { status: answer.statusCode, contentType: String(contentType ?? "application/json"), body };
  } catch (error) {
    if (fault instanceof GatewayError) throw fault;
    if (upload.signal.aborted || isCutUpload(fault ?? error))
      throw new GatewayError("cancelled", "the client left", { cause: error });
    if (error instanceof GatewayError) throw error;
    throw new GatewayError("upstream_failed", `the transcription engine broke off (${reasonOf(error)})`, {
      cause: error,
    });
  }
}

const emptyBoundary = "is-it-free";
const emptyForm = `--${emptyBoundary}\r\nContent-Disposition: form-data; name="model"\r\n\r\n\r\n--${emptyBoundary}--\r\n`;

/** A form without sound is refused at once, but stands in the same line as the uploads. Throws where it breaks off. */
export async function untilRefused({ base, dispatcher }: Server, signal: AbortSignal): Promise<void> {
  const answer = await request(`${base}${transcriptionPath}`, {
    dispatcher,
    method: "POST",
    headers: { "content-type": formType(emptyBoundary) },
    body: emptyForm,
    reset: true,
    signal,
  });
  await answer.body.dump();
}

/** What a failure of the engine means to the client. */
export function refusalOf(
  { status, body }: Answer,
  form: Pick<FormWatch, "hasBegun" | "hasFile">,
  converts: boolean,
): GatewayError {
  const text = body.toString("utf8").trim();
  // A failed conversion is an error 500 there, and was a success in earlier versions; damaged ADPCM is one of too much memory.
  if (status !== 400 && !/FFmpeg|vector::|std::(?:bad_alloc|length_error)/.test(text))
    return new GatewayError("upstream_failed", `the transcription engine answered ${status}: ${text.slice(0, 200)}`);
  if (!form.hasBegun()) return noBoundary();
  if (!form.hasFile())
    return new GatewayError("invalid_request", "the form has no field `file` with the sound in it", { param: "file" });
  const others = converts
    ? " or in any form that ffmpeg reads"
    : "; other forms need ffmpeg, which was not in PATH when the engine was started";
  return new GatewayError(
    "invalid_request",
    `the upload could not be read: it takes a form with a field \`file\` that holds sound as WAV, FLAC or MP3${others}`,
    { param: "file" },
  );
}

/** Some errors are told from answers by their body alone. */
export function isAnswer({ status, contentType, body }: Answer): boolean {
  const isError = contentType.includes("json") && body.length < 1_000 && /^\s*\{\s*"error"/.test(body.toString("utf8"));
  return status === 200 && !isError;
}

/** What Node says of a request whose client went away in the middle of it. */
function isCutUpload(error: unknown): boolean {
  const code = systemCode(error);
  const message = error instanceof Error ? error.message : "";
  return (code === "ECONNRESET" && message === "aborted") || code === "ERR_STREAM_PREMATURE_CLOSE";
}

function reasonOf(error: unknown): string {
  return systemCode(error) ?? (error instanceof Error ? error.message : String(error));
}

function endless(): GatewayError {
  return new GatewayError("upstream_failed", "the transcription engine's answer has no end");
}
