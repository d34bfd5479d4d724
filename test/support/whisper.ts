// Models for the real whisper-server, and uploads for it.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { TestContext } from "node:test";
import { startWhisper, type WhisperOptions, type WhisperRun } from "../../src/engines/speech/whisper.ts";
import type { Upload } from "../../src/engines/speech/whisper-upload.ts";
import { wavFile } from "../../src/speech/wav.ts";
import { cleanUp } from "./clean-up.ts";
import { whisperServer } from "./engine.ts";
import { patientEngine, patientProcess } from "./patience.ts";
import { scratchFolder } from "./scratch.ts";
import { whisperModel } from "./whisper-model.ts";

const never = new AbortController().signal;

/** Writes a model that says these words, whatever it hears; gives its path. */
export async function writeWhisperModel(
  folder: string,
  words: string,
  name = "ggml-said.en.bin",
  endless = false,
): Promise<string> {
  const path = join(folder, name);
  await writeFile(path, whisperModel({ words: words.split(" "), endless }));
  return path;
}

export interface WhisperWorld {
  readonly folder: string;
  /** With the model at this path; ends with the test. */
  start(model: string): Promise<WhisperRun>;
}

/** `path`: of programs, so of ffmpeg. */
export async function whisperFor(
  t: TestContext,
  { path, ...options }: Partial<WhisperOptions> & { readonly path?: string } = {},
): Promise<WhisperWorld> {
  const folder = await scratchFolder(t);
  return {
    folder,
    start: async (model) => {
      const run = await startWhisper(
        await whisperServer(),
        model,
        {
          stateDir: folder,
          scratchDir: folder,
          memoryLimit: 2 ** 32,
          environment: { PATH: path ?? process.env["PATH"], ...patientEngine },
          ...patientProcess,
          ...options,
        },
        never,
      );
      cleanUp(t, () => run.process.stop());
      return run;
    },
  };
}

/** Runs already, and says these words to whatever it hears. */
export async function startedWhisper(
  t: TestContext,
  words = "hello from the ear",
  options: Partial<WhisperOptions> = {},
): Promise<{ readonly whisper: WhisperRun; readonly folder: string }> {
  const { start, folder } = await whisperFor(t, options);
  return { whisper: await start(await writeWhisperModel(folder, words)), folder };
}

/** What it answers to a form; default: to some sound. */
export async function heard(
  whisper: WhisperRun,
  parts: Readonly<Record<string, Buffer | string>> = { file: someSound() },
): Promise<string> {
  return (await whisper.transcribe(upload(form(parts)), never)).body.toString("utf8");
}

/** Two seconds of a tone. */
export function someSound(): Buffer {
  const samples = Int16Array.from({ length: 32_000 }, (_, i) => 8_000 * Math.sin(i / 20));
  return Buffer.from(wavFile([{ sampleRate: 16_000, channels: 1, samples }]));
}

const boundary = "----speech-test-boundary";

/** The parts of a form, in order, as one body. */
export function form(parts: Readonly<Record<string, Buffer | string>>): Buffer {
  const pieces = Object.entries(parts).flatMap(([name, value]) => [
    Buffer.from(
      `--${boundary}\r\nContent-Disposition: form-data; name="${name}"${typeof value === "string" ? "" : '; filename="sound.wav"\r\nContent-Type: audio/wav'}\r\n\r\n`,
    ),
    Buffer.from(value),
    Buffer.from("\r\n"),
  ]);
  return Buffer.concat([...pieces, Buffer.from(`--${boundary}--\r\n`)]);
}

export function upload(body: Buffer | Readable): Upload {
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    contentLength: Buffer.isBuffer(body) ? body.length : null,
    body: Buffer.isBuffer(body) ? Readable.from([body]) : body,
  };
}
