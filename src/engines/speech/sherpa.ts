// Piper voices without Python: the command that serves one with sherpa-onnx, and the voice as sherpa-onnx wants it on disk.
// Starts nothing: that is voice-process.ts; what runs is sherpa-server.ts, in a process of its own.
import { createHash, randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { appendFile, chmod, copyFile, readdir, readFile, rename, rm, stat, utimes, writeFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { GatewayError, systemCode } from "../../core/errors.ts";
import { sherpaParts } from "../../speech/sherpa-voice.ts";
import { parseVoiceConfig, type VoiceConfig } from "../../speech/voice-config.ts";
import { isVoiceId } from "../../speech/voices.ts";
import { makeFolder } from "../../state/folder.ts";
import type { SherpaInstallation } from "../install/sherpa.ts";
import type { VoiceCommand } from "./voice-process.ts";

/** Handed to the process as JSON. */
export interface SherpaServerSettings {
  readonly port: number;
  readonly packageDir: string;
  readonly dataDir: string;
  readonly model: string;
  readonly tokens: string;
  readonly voice: string;
  readonly language: string;
  readonly noiseScale: number;
  readonly noiseW: number;
  readonly lengthScale: number;
  readonly threads: number;
}

export interface PreparedVoice {
  readonly voice: string;
  readonly config: VoiceConfig;
  /** Absolute paths. */
  readonly model: string;
  readonly tokens: string;
}

/** Its server answers below what this holds, and nowhere else: not for other users of the machine, nor for web pages. */
export const basePathVariable = "MODEL_GATEWAY_SPEECH_PATH";

/** Changes when what {@link prepareVoice} writes does. */
const formVersion = 2;

export function sherpaCommand(
  { packageDir, dataDir }: SherpaInstallation,
  { voice, config, model, tokens }: PreparedVoice,
  threads: number,
): VoiceCommand {
  const { espeakVoice: language, noiseScale, noiseW, lengthScale } = config;
  const basePath = `/${randomBytes(16).toString("hex")}`;
  const settings = { packageDir, dataDir, model, tokens, voice, language, noiseScale, noiseW, lengthScale, threads };
  return {
    path: process.execPath,
    workingDir: packageDir,
    basePath,
    // Not an argument: those are everybody's to read.
    environment: { [basePathVariable]: basePath },
    args: (port) => [
      fileURLToPath(new URL("./sherpa-server.js", import.meta.url)),
      JSON.stringify({ port, ...settings } satisfies SherpaServerSettings),
    ],
  };
}

/**
 * The voice in `model` (absolute path of the `.onnx` file, its description beside it), copied below `preparedDir` in the form
 * that sherpa-onnx takes; no work if that was done before and is unchanged. The file itself stays as it was downloaded and verified;
 * of other voices no copy is kept, as one engine speaks with one voice. Throws `invalid_request`, `engine_failed`, `not_supported`, `source_missing`, `disk_full`, `state_unwritable`.
 */
export async function prepareVoice(voice: string, model: string, preparedDir: string): Promise<PreparedVoice> {
  if (!isVoiceId(voice)) throw new GatewayError("invalid_request", `${JSON.stringify(voice)} is no voice`);
  const config = parseVoiceConfig(await readJson(`${model}.json`), voice);
  const { metadata, tokens } = sherpaParts(config, voice);
  try {
    const { size, mtimeMs } = await stat(model);
    const key = createHash("sha256").update(`${formVersion} ${size} ${mtimeMs} ${tokens}`).update(metadata);
    const home = join(preparedDir, `${voice}-${key.digest("hex").slice(0, 12)}`);
    const prepared = { voice, config, model: join(home, "voice.onnx"), tokens: join(home, "tokens.txt") };
    await removeOthers(home);
    if (await isWhole(prepared, size + metadata.length, mtimeMs, tokens)) return prepared;
    const filling = `${home}.part`;
    await makeFolder(filling);
    const copy = join(filling, "voice.onnx");
    // Where the filesystem can, the copy shares the original's room.
    await copyFile(model, copy, constants.COPYFILE_FICLONE);
    // A copy has the mode of what it is of, which may not be writable.
    await chmod(copy, 0o644);
    await appendFile(copy, metadata);
    await utimes(copy, wholeSeconds(mtimeMs), wholeSeconds(mtimeMs));
    await writeFile(join(filling, "tokens.txt"), tokens);
    await rm(home, { recursive: true, force: true });
    await rename(filling, home);
    return prepared;
  } catch (error) {
    throw fileError(error, model);
  }
}

/** Other voices, earlier forms of this one, and what an interrupted preparation left. */
async function removeOthers(home: string): Promise<void> {
  const preparedDir = dirname(home);
  for (const name of await readdir(preparedDir).catch(() => [])) {
    if (name !== basename(home) && /-[0-9a-f]{12}(\.part)?$/.test(name))
      await rm(join(preparedDir, name), { recursive: true, force: true });
  }
}

/** A copy that does not work, though the voice itself is as it should be: the next start makes another. */
export async function discardPrepared({ model }: PreparedVoice): Promise<void> {
  await rm(dirname(model), { recursive: true, force: true });
}

async function readJson(path: string): Promise<unknown> {
  const text = await readFile(path, "utf8").catch((error: unknown) => {
    throw fileError(error, path);
  });
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The copy has its voice's time: whatever writes into it later changes that. */
async function isWhole(copy: PreparedVoice, size: number, mtimeMs: number, tokens: string): Promise<boolean> {
  const entry = await stat(copy.model).catch(() => null);
  if (entry?.size !== size || entry.mtimeMs !== wholeSeconds(mtimeMs) * 1000) return false;
  return (await readFile(copy.tokens, "utf8").catch(() => null)) === tokens;
}

/** In steps of two: every filesystem keeps those. */
function wholeSeconds(ms: number): number {
  return 2 * Math.floor(ms / 2000);
}

function fileError(error: unknown, path: string): GatewayError {
  if (error instanceof GatewayError) return error;
  const code = systemCode(error) ?? String(error);
  if (code === "ENOENT") return new GatewayError("source_missing", `${basename(path)} is not there`, { cause: error });
  const kind = code === "ENOSPC" || code === "EDQUOT" ? "disk_full" : "state_unwritable";
  return new GatewayError(kind, `${basename(path)} cannot be prepared for speech (${code})`, { cause: error });
}
