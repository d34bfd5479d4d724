// A voice in sherpa-onnx's layout on disk, made from Piper's.
import { constants } from "node:fs";
import { appendFile, chmod, copyFile, readFile, rm, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { GatewayError, isAbsent } from "../../core/errors.ts";
import { parseJson } from "../../core/json.ts";
import { parseVoiceConfig, type VoiceConfig } from "../../speech/voice-config.ts";
import { isVoiceId } from "../../speech/voices.ts";
import { stateError } from "../../state/atomic-file.ts";
import { makeFolder } from "../../state/folder.ts";

export interface PreparedVoice {
  readonly voice: string;
  readonly config: VoiceConfig;
  /** Absolute paths. */
  readonly model: string;
  readonly tokens: string;
}

/** A voice in the form that sherpa-onnx takes, alone in `preparedDir`. `model`: the `.onnx` file, its description beside it. */
export async function prepareVoice(voice: string, model: string, preparedDir: string): Promise<PreparedVoice> {
  if (!isVoiceId(voice)) throw new GatewayError("invalid_request", `${JSON.stringify(voice)} is no voice`);
  const home = join(preparedDir, voice);
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

/** Facts to append to the model (a protobuf message is the sum of its parts) and its sounds: without them the process just ends. */
function sherpaParts(config: VoiceConfig, voice: string): { readonly metadata: Uint8Array; readonly tokens: string } {
  if (config.phonemeType !== "espeak") {
    throw new GatewayError(
      "not_supported",
      `${voice} takes its sounds from "${config.phonemeType}", which only Piper itself can do; choose another voice`,
    );
  }
  const facts: Readonly<Record<string, string>> = {
    model_type: "vits",
    comment: "piper",
    language: config.espeakVoice,
    voice: config.espeakVoice,
    has_espeak: "1",
    n_speakers: String(config.numSpeakers),
    sample_rate: String(config.sampleRate),
  };
  return {
    metadata: Buffer.concat(Object.entries(facts).map(([key, value]) => metadataProperty(key, value))),
    // A symbol of several characters ends sherpa-onnx; espeak-ng gives none, they come from other makers' voices.
    tokens: [...config.phonemeIds].map(([symbol, id]) => (/^.$/u.test(symbol) ? `${symbol} ${id}\n` : "")).join(""),
  };
}

/** `ModelProto.metadata_props`, field 14: an entry of key (field 1) and value (field 2). */
function metadataProperty(key: string, value: string): Uint8Array {
  return bytesField(14, Buffer.concat([bytesField(1, Buffer.from(key)), bytesField(2, Buffer.from(value))]));
}

function bytesField(id: number, bytes: Uint8Array): Uint8Array {
  // Ids below 16 and lengths below 128 are one byte each; both hold for these facts, or it is a mistake here.
  if (id > 15 || bytes.length > 127) throw new RangeError(`field ${id} of ${bytes.length} bytes`);
  return Buffer.concat([Uint8Array.of(id * 8 + 2, bytes.length), bytes]);
}
