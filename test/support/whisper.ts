// Models for the real whisper-server, and uploads for it.
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { TestContext } from "node:test";
import { createWhisper, type Whisper } from "../../src/engines/whisper.ts";
import type { Upload } from "../../src/engines/whisper-wire.ts";
import { wavFile } from "../../src/speech/wav.ts";
import { cleanUp } from "./clean-up.ts";
import { whisperServer } from "./engine.ts";
import { scratchFolder } from "./scratch.ts";
import { whisperModel } from "./whisper-model.ts";

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

/** Not started; what is left of it ends with the test. */
export async function whisperFor(
  t: TestContext,
  options: {
    readonly path?: string;
    readonly queueDepth?: number;
    readonly freeWithinMs?: number;
    readonly memoryLimit?: number;
    readonly output?: (text: string) => void;
  } = {},
): Promise<{ readonly whisper: Whisper; readonly folder: string }> {
  const folder = await scratchFolder(t);
  const whisper = createWhisper({
    stateDir: folder,
    scratchDir: folder,
    memoryLimit: options.memoryLimit ?? 2 ** 32,
    environment: { PATH: options.path ?? process.env["PATH"] },
    startTimeoutMs: 20_000,
    stopGraceMs: 5_000,
    silenceLimitMs: 20_000,
    queueDepth: options.queueDepth ?? 4,
    freeWithinMs: options.freeWithinMs ?? 5_000,
    now: Date.now,
    onOutput: options.output ?? (() => undefined),
    onChange: () => undefined,
  });
  cleanUp(t, () => whisper.close());
  return { whisper, folder };
}

/** Runs already, and says these words to whatever it hears. */
export async function startedWhisper(
  t: TestContext,
  words = "hello from the ear",
  queueDepth = 4,
  freeWithinMs = 5_000,
): Promise<{ readonly whisper: Whisper; readonly folder: string }> {
  const { whisper, folder } = await whisperFor(t, { queueDepth, freeWithinMs });
  await whisper.start(await whisperServer(), await writeWhisperModel(folder, words), new AbortController().signal);
  return { whisper, folder };
}

/** What it answers to a form; default: to some sound. */
export async function heard(
  whisper: Whisper,
  parts: Readonly<Record<string, Buffer | string>> = { file: someSound() },
): Promise<string> {
  return Buffer.from((await whisper.transcribe(upload(form(parts)))).body).toString("utf8");
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

export function upload(body: Buffer | Readable, signal: AbortSignal = new AbortController().signal): Upload {
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    contentLength: Buffer.isBuffer(body) ? body.length : null,
    body: () => (Buffer.isBuffer(body) ? Readable.from([body]) : body.iterator({ destroyOnReturn: false })),
    waiting: signal,
    signal,
  };
}
