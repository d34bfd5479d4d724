// Piper voices without Python: the command that serves one with sherpa-onnx (sherpa-server.ts, in a process of its own), and the
// voice in sherpa-onnx's layout on disk.
import { randomBytes } from "node:crypto";
import { constants } from "node:fs";
import { appendFile, chmod, copyFile, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { GatewayError, isAbsent } from "../../core/errors.ts";
import { sherpaParts } from "../../speech/sherpa-voice.ts";
import { parseVoiceConfig, type VoiceConfig } from "../../speech/voice-config.ts";
import { isVoiceId } from "../../speech/voices.ts";
import { parseJson, stateError } from "../../state/atomic-file.ts";
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

interface PreparedVoice {
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
  const home = join(preparedDir, `${voice}-${randomBytes(6).toString("hex")}`);
  try {
    const config = parseVoiceConfig(parseJson(await readFile(`${model}.json`, "utf8")), voice);
    const { metadata, tokens } = sherpaParts(config, voice);
    const prepared = { voice, config, model: join(home, "voice.onnx"), tokens: join(home, "tokens.txt") };
    await rm(preparedDir, { recursive: true, force: true });
    await makeFolder(home);
    // Where the file system can, the copy shares the original's blocks.
    await copyFile(model, prepared.model, constants.COPYFILE_FICLONE);
    // A copy has the mode of its original, which may be read-only.
    await chmod(prepared.model, 0o644);
    await appendFile(prepared.model, metadata);
    await writeFile(prepared.tokens, tokens);
    return prepared;
  } catch (error) {
    if (error instanceof GatewayError) throw error;
    if (isAbsent(error)) throw new GatewayError("source_missing", `${voice} is not on the disk`, { cause: error });
    throw stateError(basename(model), error);
  }
}
