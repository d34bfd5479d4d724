// whisper-server as a supervised child, and the way of an upload through it: one at a time, as it does no more at once.
// Adapts nothing: what the engine answers is the answer, but for errors, which it does not explain.
import { readdir, rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { Readable } from "node:stream";
import { Agent, request } from "undici";
import { GatewayError, systemCode } from "../core/errors.ts";
import { readAtMost } from "../core/read-at-most.ts";
import { makeFolder } from "../desired/folder.ts";
import { isEnglishOnly } from "../speech/transcription-models.ts";
import { createTurns } from "../speech/turns.ts";
import { findOnPath } from "./locate.ts";
import { createServerChild, type ServerChildOptions, type ServerSnapshot } from "./server-child.ts";

const transcriptionPath = "/v1/audio/transcriptions";

export interface WhisperSnapshot extends ServerSnapshot {
  /** Absolute path of the model that it was started with. */
  readonly model: string | null;
  /** Whether ffmpeg was there when it was started: without it WAV, FLAC and MP3 are all that it reads. */
  readonly converts: boolean;
  /** An upload has its turn. */
  readonly busy: boolean;
  /** How many wait for theirs. */
  readonly waiting: number;
}

export interface Upload {
  /** As the client sent it: `multipart/form-data; boundary=…`. */
  readonly contentType: string;
  /** Bytes; null where the client did not say. */
  readonly contentLength: number | null;
  /** Not read before its turn comes, and never faster than the engine takes it. */
  readonly body: Readable;
  /** The client left. */
  readonly signal: AbortSignal;
}

export interface Transcription {
  readonly contentType: string;
  readonly body: Uint8Array;
}

export interface Whisper {
  snapshot(): WhisperSnapshot;
  /** `model` is an absolute path; another model needs a stop first. Throws `engine_missing`, `engine_failed`. */
  start(binary: string, model: string, signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
  /**
   * Throws `invalid_request` for a form or sound that cannot be read, `engine_failed` where it is not running or too many
   * wait, `upstream_failed` where it breaks off, `cancelled`.
   */
  transcribe(upload: Upload): Promise<Transcription>;
  close(): Promise<void>;
}

const healthMs = 2_000;
/** Text alone: hours of speech with all their words and times are a few megabytes. */
const answerLimit = 64 * 1024 * 1024;

/** `queueDepth`: how many uploads may wait. `scratchDir`: a folder of its own for uploads that are converted. */
export function createWhisper(
  options: Omit<ServerChildOptions, "what"> & { readonly queueDepth: number; readonly scratchDir: string },
): Whisper {
  const child = createServerChild({ ...options, what: "the transcription engine" });
  const turns = createTurns({ width: 1, depth: options.queueDepth, what: "transcriptions" });
  // An hour of speech is silent for minutes: no time limits of our own.
  const agent = new Agent({ pipelining: 1, headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 5_000 } });
  let model: string | null = null;
  let converts = false;
  let busy = false;

  async function send(upload: Upload): Promise<{ status: number; contentType: string; body: Buffer }> {
    try {
      const answer = await request(`${child.origin()}${transcriptionPath}`, {
        dispatcher: agent,
        method: "POST",
        headers: {
          "content-type": upload.contentType,
          ...(upload.contentLength === null ? {} : { "content-length": String(upload.contentLength) }),
        },
        // Not the stream itself: undici would destroy it when the engine breaks off, and with it the connection on which
        // the client is to read why.
        body: Readable.from(upload.body.iterator({ destroyOnReturn: false })),
        // A stream cannot be sent a second time over a connection that turns out to be closed.
        reset: true,
        signal: upload.signal,
      });
      const contentType = answer.headers["content-type"];
      const body = await readAtMost(answer.body, answerLimit, endless);
      return { status: answer.statusCode, contentType: String(contentType ?? "application/json"), body };
    } catch (error) {
      // Most clients read an answer only when they have sent everything.
      upload.body.resume();
      if (upload.signal.aborted || isCutUpload(error))
        throw new GatewayError("cancelled", "the client left", { cause: error });
      if (error instanceof GatewayError) throw error;
      throw brokenOff(error);
    }
  }

  function refused(status: number, text: string): GatewayError {
    // A failed conversion is an error 500 there, and was a success in earlier versions.
    if (status !== 400 && !text.includes("FFmpeg"))
      return new GatewayError("upstream_failed", `the transcription engine answered ${status}: ${text.slice(0, 200)}`);
    const others = converts
      ? " or in any form that ffmpeg reads"
      : "; other forms need ffmpeg, which was not in PATH when the engine was started";
    return new GatewayError(
      "invalid_request",
      `the upload could not be read: it takes a form with a field \`file\` that holds sound as WAV, FLAC or MP3${others}`,
    );
  }

  return {
    snapshot: () => ({ ...child.snapshot(), model, converts, busy, waiting: turns.waiting() }),
    start: async (binary, path, signal) => {
      // Asked to convert without ffmpeg it ends at once, with success.
      converts = (await findOnPath("ffmpeg", options.environment["PATH"] ?? "")) !== null;
      model = path;
      await makeFolder(options.scratchDir);
      await clear(options.scratchDir);
      await child.start(
        {
          path: binary,
          workingDir: options.scratchDir,
          args: (port) => whisperArguments(port, path, converts ? options.scratchDir : null),
          isReady,
        },
        signal,
      );
    },
    stop: () => child.stop(),
    transcribe: async (upload) => {
      if (!/^multipart\/form-data\s*;.*boundary=/i.test(upload.contentType)) {
        throw new GatewayError("invalid_request", "the upload must be multipart/form-data with a field `file`");
      }
      // Where nothing runs nobody has to wait for it.
      child.origin();
      const over = await turns.take(upload.signal);
      busy = true;
      try {
        const { status, contentType, body } = await send(upload);
        if (status === 200 && !isErrorText(contentType, body)) return { contentType, body };
        if (converts) await clear(options.scratchDir);
        throw refused(status, body.toString("utf8").trim());
      } finally {
        busy = false;
        over();
      }
    },
    close: async () => {
      await child.stop();
      await agent.destroy();
    },
  };
}

/** It leaves an upload behind that could not be converted, and when it is killed. */
async function clear(scratchDir: string): Promise<void> {
  for (const name of await readdir(scratchDir))
    if (name.startsWith("whisper-server-")) await rm(join(scratchDir, name), { force: true });
}

function brokenOff(error: unknown): GatewayError {
  const reason = systemCode(error) ?? (error instanceof Error ? error.message : String(error));
  return new GatewayError("upstream_failed", `the transcription engine broke off (${reason})`, { cause: error });
}

function whisperArguments(port: number, model: string, convertIn: string | null): string[] {
  return [
    "--model",
    model,
    "--host",
    "127.0.0.1",
    "--port",
    String(port),
    "--inference-path",
    transcriptionPath,
    // It takes everything for English otherwise; a request may still name its language.
    ...(isEnglishOnly(basename(model)) ? [] : ["--language", "auto"]),
    ...(convertIn === null ? [] : ["--convert", "--tmp-dir", convertIn]),
  ];
}

/** The port opens when the model is loaded; a version without /health answers 404 then. */
async function isReady(origin: string, signal: AbortSignal): Promise<boolean> {
  const limit = AbortSignal.any([signal, AbortSignal.timeout(healthMs)]);
  const answer = await request(`${origin}/health`, { reset: true, signal: limit });
  await answer.body.dump();
  return answer.statusCode === 200 || answer.statusCode === 404;
}

/** An error by its body alone. */
function isErrorText(contentType: string, body: Buffer): boolean {
  return contentType.includes("json") && body.length < 1_000 && /^\s*\{\s*"error"/.test(body.toString("utf8"));
}

/** What Node says of a request whose client went away in the middle of it. */
function isCutUpload(error: unknown): boolean {
  const code = systemCode(error);
  const message = error instanceof Error ? error.message : "";
  return (code === "ECONNRESET" && message === "aborted") || code === "ERR_STREAM_PREMATURE_CLOSE";
}

function endless(): GatewayError {
  return new GatewayError("upstream_failed", "the transcription engine's answer has no end");
}
