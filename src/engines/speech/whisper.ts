// One process of whisper-server, and the way of an upload through it. Adapts nothing: what the engine answers is the answer,
// but for its errors, which become ours.
import { randomBytes } from "node:crypto";
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { errorLine } from "../../core/error-line.ts";
import { GatewayError } from "../../core/errors.ts";
import { isJsonObject, parseJson } from "../../core/json.ts";
import { unlessLeft } from "../../core/unless-left.ts";
import { makeFolder } from "../../state/folder.ts";
import { findOnPath } from "../install/locate.ts";
import { memoryOf, watchMemory } from "../process/memory.ts";
import { hasEnded, type ServerOptions, startServer } from "../process/server-process.ts";
import type { EngineRun } from "./speech-engine.ts";
import { type EngineAnswer, sendUpload, type Upload } from "./whisper-upload.ts";
import { isReady, requireAnswer, whisperArguments } from "./whisper-wire.ts";

export interface WhisperRun extends EngineRun {
  /** Whether ffmpeg was there at the start: without it WAV, FLAC and MP3 are all that it reads. */
  readonly converts: boolean;
  /**
   * One at a time. Throws `invalid_request` for what the engine refuses, `sound_too_long`, `upstream_failed` where it breaks
   * off, `cancelled`, and what the upload's own bytes throw.
   */
  transcribe(upload: Upload, signal: AbortSignal): Promise<EngineAnswer>;
}

export interface WhisperOptions extends ServerOptions {
  /** A folder of its own, for uploads that are converted. */
  readonly scratchDir: string;
  /** Bytes by which it may grow. */
  readonly memoryLimit: number;
}

/** `model`: an absolute path. Throws as {@link startServer}. */
export async function startWhisper(
  binary: string,
  model: string,
  options: WhisperOptions,
  signal: AbortSignal,
): Promise<WhisperRun> {
  const { scratchDir, memoryLimit } = options;
  // Asked to convert without ffmpeg it ends at once, with success.
  const converts = (await findOnPath("ffmpeg", options.environment["PATH"] ?? "")) !== null;
  // Another one at each start.
  const prefix = `/${randomBytes(16).toString("hex")}`;
  await makeFolder(scratchDir);
  await clear(scratchDir);
  const process = await startServer(
    "the transcription engine",
    {
      path: binary,
      workingDir: scratchDir,
      args: (port) => whisperArguments(port, model, prefix, converts ? scratchDir : null),
      isReady: (origin, limit) => isReady(origin + prefix, limit),
    },
    // The path is a key: it is in no text that is kept.
    { ...options, onOutput: (text, from) => options.onOutput(text.replaceAll(prefix, "/***"), from) },
    signal,
  );
  const base = process.origin + prefix;

  /** Ends a process that grows beyond the limit: it has none of its own, and a small FLAC may claim to be years long. */
  async function withinMemory<T>(work: () => Promise<T>): Promise<T> {
    // It keeps some of what it had for the uploads before.
    const before = await memoryOf(process.pid);
    if (before === null) return work();
    let isTooMuch = false;
    const end = (): void => {
      isTooMuch = true;
      void process.stop(0);
    };
    const over = new AbortController();
    // What ffmpeg has made of it so far will be in memory next: an hour of quiet is a few kB before.
    void watchMemory(process.pid, before + memoryLimit, () => convertedBytes(scratchDir), end, over.signal);
    try {
      const answer = await work();
      // It may still tell that ffmpeg, which is ended with it, has failed.
      if (!isTooMuch) return answer;
    } catch (error) {
      if (!isTooMuch) throw error;
    } finally {
      over.abort();
    }
    await process.stop(0);
    await clear(scratchDir);
    const message = `the sound is too long: the engine took more than ${memoryLimit} bytes of memory for it, and was ended`;
    throw new GatewayError("sound_too_long", message, { param: "file" });
  }

  return {
    process,
    converts,
    transcribe: async (upload, left) => {
      let answer: EngineAnswer;
      try {
        // An upload cannot be sent twice: nothing of it is read before a process that may have just ended has answered.
        await requireAnswer(base, left);
        answer = await withinMemory(() => sendUpload(base, upload, left));
      } catch (error) {
        if (hasEnded(error)) await unlessLeft(process.settle(), left);
        // It would go on with an upload that was broken off, and the next one wait for that.
        else await process.stop(0);
        throw error;
      }
      if (answer.status === 200) return answer;
      if (converts) await clear(scratchDir);
      throw refusalOf(answer, converts);
    },
  };
}

/** A process that answers is well: it is the upload that it refuses, with 400, or with 500 for a field or a file that is damaged. */
function refusalOf({ status, body }: EngineAnswer, converts: boolean): GatewayError {
  const text = body.toString("utf8");
  const parsed = parseJson(text);
  const error = isJsonObject(parsed) ? parsed["error"] : null;
  // Its HTTP library writes the status first.
  const line = errorLine(typeof error === "string" ? error : text.replace(/^\d{3} .*\n/, ""));
  const others = converts
    ? " or in any form that ffmpeg reads"
    : "; other forms need ffmpeg, which was not in PATH when the engine was started";
  return new GatewayError(
    "invalid_request",
    `the transcription engine refused the upload (${status}: ${line}): it takes a form with a field \`file\` that holds sound as WAV, FLAC or MP3${others}`,
  );
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
