// Piper voices without Python: the command that serves one with sherpa-onnx, and the voice in sherpa-onnx's layout on disk.
// Starts nothing: that is voice-process.ts; what runs is sherpa-server.ts, in a process of its own.
import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { appendFile, chmod, copyFile, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
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
    // Not an argument: other users can read those.
    environment: { [basePathVariable]: basePath },
    args: (port) => [
      fileURLToPath(new URL("./sherpa-server.js", import.meta.url)),
      JSON.stringify({ port, ...settings } satisfies SherpaServerSettings),
    ],
  };
}

/**
 * The voice in `model` (absolute path of the `.onnx` file, its description beside it), copied below `preparedDir` in the form
 * that sherpa-onnx takes. Of other voices no copy is kept, as one engine speaks with one voice; a process that still speaks has
 * read its own. Throws `invalid_request`, `engine_failed`, `not_supported`, `source_missing`, `disk_full`, `state_unwritable`.
 */
export async function prepareVoice(voice: string, model: string, preparedDir: string): Promise<PreparedVoice> {
  if (!isVoiceId(voice)) throw new GatewayError("invalid_request", `${JSON.stringify(voice)} is no voice`);
  const config = parseVoiceConfig(await readJson(`${model}.json`), voice);
  const { metadata, tokens } = sherpaParts(config, voice);
  const home = join(preparedDir, `${voice}-${randomBytes(6).toString("hex")}`);
  const prepared = { voice, config, model: join(home, "voice.onnx"), tokens: join(home, "tokens.txt") };
  try {
    for (const name of await readdir(preparedDir).catch(() => []))
      await rm(join(preparedDir, name), { recursive: true, force: true });
    await makeFolder(home);
    // Where the file system can, the copy shares the original's blocks.
    await copyFile(model, prepared.model, constants.COPYFILE_FICLONE);
    // A copy has the mode of its original, which may be read-only.
    await chmod(prepared.model, 0o644);
    await appendFile(prepared.model, metadata);
    await writeFile(prepared.tokens, tokens);
    return prepared;
  } catch (error) {
    throw fileError(error, model);
  }
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

function fileError(error: unknown, path: string): GatewayError {
  if (error instanceof GatewayError) return error;
  const code = systemCode(error) ?? String(error);
  if (code === "ENOENT") return new GatewayError("source_missing", `${basename(path)} is not there`, { cause: error });
  const kind = code === "ENOSPC" || code === "EDQUOT" ? "disk_full" : "state_unwritable";
  return new GatewayError(kind, `${basename(path)} cannot be prepared for speech (${code})`, { cause: error });
}
