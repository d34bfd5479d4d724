// A Piper voice as sherpa-onnx needs it: facts about it inside the model file, and its sounds as a table of their own.
// Pure: bytes to append and a text to write. Without them sherpa-onnx ends its process without an error.
import { GatewayError } from "../core/errors.ts";
import type { VoiceConfig } from "./voice-config.ts";

export interface SherpaParts {
  /** To be appended to the `.onnx` file: a protobuf message is the sum of its parts, so nothing before it changes. */
  readonly metadata: Uint8Array;
  /** `tokens.txt`: a symbol and its number on each line. */
  readonly tokens: string;
}

/** Throws `not_supported` for a voice whose text does not go through espeak-ng. */
export function sherpaParts(config: VoiceConfig, voice: string): SherpaParts {
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
    tokens: tokensOf(config),
  };
}

/** A symbol of several characters ends sherpa-onnx; espeak-ng gives none, they come from other makers' voices. */
function tokensOf(config: VoiceConfig): string {
  const lines: string[] = [];
  for (const [symbol, [id]] of config.phonemeIds) {
    if (/^.$/u.test(symbol) && id !== undefined) lines.push(`${symbol} ${id}\n`);
  }
  return lines.join("");
}

/** `ModelProto.metadata_props`, field 14: an entry of key (field 1) and value (field 2). */
function metadataProperty(key: string, value: string): Uint8Array {
  return bytesField(14, Buffer.concat([bytesField(1, encode(key)), bytesField(2, encode(value))]));
}

function bytesField(id: number, bytes: Uint8Array): Uint8Array {
  // Ids below 16 and lengths below 128 are one byte each; both hold for these facts, or it is a mistake here.
  if (id > 15 || bytes.length > 127) throw new RangeError(`field ${id} of ${bytes.length} bytes`);
  return Buffer.concat([Uint8Array.of(id * 8 + 2, bytes.length), bytes]);
}

function encode(text: string): Uint8Array {
  return new TextEncoder().encode(text);
}
