// whisper-server as a supervised child, and the way of an upload through it: one at a time, as it does no more at once.
// Adapts nothing: what the engine answers is the answer, but for errors, which it does not explain.
import { randomBytes } from "node:crypto";
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { Agent } from "undici";
import { GatewayError, toGatewayError } from "../core/errors.ts";
import { makeFolder } from "../desired/folder.ts";
import { boundaryOf, createFormWatch } from "../speech/form-watch.ts";
import { createTurns } from "../speech/turns.ts";
import { findOnPath } from "./locate.ts";
import { memoryOf, watchMemory } from "./memory.ts";
import { createServerChild, type ServerChildOptions, type ServerSnapshot } from "./server-child.ts";
import {
  isAnswer,
  isReady,
  refusalOf,
  sendUpload,
  type Upload,
  untilRefused,
  whisperArguments,
} from "./whisper-wire.ts";

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

export interface Transcription {
  readonly contentType: string;
  readonly body: Uint8Array;
  /** What the form said beside the sound. */
  readonly fields: ReadonlyMap<string, string>;
}

export interface Whisper {
  snapshot(): WhisperSnapshot;
  /** `model` is an absolute path; another model needs a stop first. Throws `engine_missing`, `engine_failed`. */
  start(binary: string, model: string, signal: AbortSignal): Promise<void>;
  stop(): Promise<void>;
  /**
   * Throws `invalid_request` for a form or sound that cannot be read, `sound_too_long`, `engine_failed` where it is not running, `busy` where
   * too many wait, `upstream_failed` where it breaks off, `cancelled`, and what the upload's own bytes throw.
   */
  transcribe(upload: Upload): Promise<Transcription>;
  close(): Promise<void>;
}

/** For the end of the process to be noticed, once it broke off. */
const endedWithinMs = 500;
/** It drops what nobody waits for at the next step of its work; but to cut a long word into tokens is one step. */
const defaultFreeWithinMs = 5_000;

/**
 * `queueDepth`: how many uploads may wait. `scratchDir`: a folder of its own for uploads that are converted. `memoryLimit`:
 * bytes by which it may grow. `freeWithinMs`: how long the work on an upload may go on that was broken off.
 */
export function createWhisper(
  options: Omit<ServerChildOptions, "what"> & {
    readonly queueDepth: number;
    readonly scratchDir: string;
    readonly memoryLimit: number;
    readonly freeWithinMs?: number;
  },
): Whisper {
  const child = createServerChild({ ...options, what: "the transcription engine" });
  const turns = createTurns({ width: 1, depth: options.queueDepth, what: "transcriptions" });
  // An hour of speech is silent for minutes: no time limits of our own.
  const dispatcher = new Agent({ pipelining: 1, headersTimeout: 0, bodyTimeout: 0, connect: { timeout: 5_000 } });
  let model: string | null = null;
  let converts = false;
  let busy = false;
  /** Another one at each start. */
  let prefix = "";
  const server = (): Parameters<typeof sendUpload>[0] => ({ base: `${child.origin()}${prefix}`, dispatcher });

  /** Ends an engine that grows without end: it knows no limit, and the machine's memory is everybody's. */
  async function withinMemory<T>(work: () => Promise<T>): Promise<T> {
    const { pid } = child.snapshot();
    // It keeps some of what it had for the uploads before.
    const before = pid === null ? null : await memoryOf(pid);
    if (pid === null || before === null) return work();
    let isTooMuch = false;
    const end = (): void => {
      isTooMuch = true;
      void child.stop(0);
    };
    // What ffmpeg has made of it so far will be in memory next: an hour of quiet is a few kB before.
    const converted = (): Promise<number> => (converts ? convertedBytes(options.scratchDir) : Promise.resolve(0));
    const unwatch = watchMemory(pid, before + options.memoryLimit, end, converted);
    let cause: unknown;
    try {
      const answer = await work();
      // It may still tell that ffmpeg, which is ended with it, has failed.
      if (!isTooMuch) return answer;
    } catch (error) {
      if (!isTooMuch) throw error;
      cause = error;
    } finally {
      unwatch();
    }
    await child.stop(0);
    await clear(options.scratchDir);
    const message = `the sound is too long: over it the engine took more than ${options.memoryLimit} bytes of memory, and was ended`;
    throw new GatewayError("sound_too_long", message, { param: "file", cause });
  }

  async function hear(upload: Upload, boundary: string): Promise<Transcription> {
    const watch = createFormWatch(boundary);
    const answer = await withinMemory(() => sendUpload(server(), upload, boundary, watch));
    if (isAnswer(answer)) return { contentType: answer.contentType, body: answer.body, fields: watch.fields };
    if (converts) await clear(options.scratchDir);
    throw refusalOf(answer, watch, converts);
  }

  /** The next one's turn comes when the engine can take it: one that goes on with work nobody waits for is ended. */
  async function untilFree(): Promise<void> {
    const { phase, pid } = child.snapshot();
    if (phase !== "ready") return;
    try {
      const limit = AbortSignal.timeout(options.freeWithinMs ?? defaultFreeWithinMs);
      await untilRefused(server(), limit);
    } catch {
      const now = child.snapshot();
      if (now.phase === "ready" && now.pid === pid) await child.stop(0);
    }
  }

  return {
    snapshot: () => ({ ...child.snapshot(), model, converts, busy, waiting: turns.waiting() }),
    start: async (binary, path, signal) => {
      // Asked to convert without ffmpeg it ends at once, with success.
      converts = (await findOnPath("ffmpeg", options.environment["PATH"] ?? "")) !== null;
      model = path;
      const secret = `/${randomBytes(16).toString("hex")}`;
      prefix = secret;
      await makeFolder(options.scratchDir);
      await clear(options.scratchDir);
      await child.start(
        {
          path: binary,
          workingDir: options.scratchDir,
          args: (port) =>
            whisperArguments({ port, model: path, convertIn: converts ? options.scratchDir : null, prefix: secret }),
          isReady: (origin, limit) => isReady(`${origin}${secret}`, limit),
        },
        signal,
      );
    },
    stop: () => child.stop(),
    transcribe: async (upload) => {
      const boundary = boundaryOf(upload.contentType);
      if (boundary === null)
        throw new GatewayError(
          "invalid_request",
          "the upload must be multipart/form-data with a boundary and a field `file`",
        );
      // Where nothing runs nobody has to wait for it.
      child.origin();
      const over = await turns.take(upload.waiting);
      busy = true;
      const next = (): void => {
        busy = false;
        over();
      };
      try {
        const transcription = await hear(upload, boundary);
        next();
        return transcription;
      } catch (error) {
        const { code, cause } = toGatewayError(error);
        if (code === "upstream_failed" && cause !== undefined) await child.ended(endedWithinMs);
        void untilFree().finally(next);
        throw error;
      }
    },
    close: async () => {
      await child.stop();
      await dispatcher.destroy();
    },
  };
}

/** It leaves an upload behind that could not be converted, and when it is killed. */
async function clear(scratchDir: string): Promise<void> {
  for (const path of await converting(scratchDir)) await rm(path, { force: true });
}

async function convertedBytes(scratchDir: string): Promise<number> {
  const files = await Promise.all((await converting(scratchDir)).map((path) => stat(path).catch(() => null)));
  return files.reduce((sum, file) => sum + (file?.size ?? 0), 0);
}

/** The uploads that it converts, and what becomes of them. */
async function converting(scratchDir: string): Promise<string[]> {
  const names = await readdir(scratchDir);
  return names.filter((name) => name.startsWith("whisper-server-")).map((name) => join(scratchDir, name));
}
