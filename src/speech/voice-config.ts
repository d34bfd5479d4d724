// A voice's description in its `.onnx.json`: sample rate, speakers, phonemes.
// Pure. Piper's server answers an unknown speaker with the wrong voice instead of an error, so speakers are checked here.
import { GatewayError } from "../core/errors.ts";
import { isJsonObject } from "../core/json.ts";
import { count, numbersIn } from "./voices.ts";

export interface VoiceConfig {
  /** Samples per second. */
  readonly sampleRate: number;
  readonly numSpeakers: number;
  readonly speakers: ReadonlyMap<string, number>;
  /** espeak-ng's name of the language. */
  readonly espeakVoice: string;
  /** `espeak` where the text goes through espeak-ng; other ways need programs of their own. */
  readonly phonemeType: string;
  /** The first number of each. */
  readonly phonemeIds: ReadonlyMap<string, number>;
  /** Defaults of the voice. */
  readonly noiseScale: number;
  readonly lengthScale: number;
  readonly noiseW: number;
}

/** Pause, beginning and end. Engines put them around every text: without a number for them Piper fails, sherpa-onnx never ends. */
const framing = ["_", "^", "$"] as const;

/** Fields that a voice's description and the manifest share. */
export type Speakers = Pick<VoiceConfig, "numSpeakers" | "speakers">;

/** Throws `engine_failed` that names what is missing: Piper would end over it. */
export function parseVoiceConfig(value: unknown, voice: string): VoiceConfig {
  const config = partOf(value);
  const espeakVoice = partOf(config["espeak"])["voice"];
  const inference = partOf(config["inference"]);
  const sampleRate = count(partOf(config["audio"])["sample_rate"]) ?? 0;
  const numSpeakers = count(config["num_speakers"]);
  const phonemeIds = numbersIn(config["phoneme_id_map"], (ids) => (Array.isArray(ids) ? count(ids[0]) : null));
  const lacking = framing.filter((symbol) => !phonemeIds.has(symbol));
  const missing = [
    sampleRate < 1000 || sampleRate > 384_000 ? "audio.sample_rate" : "",
    numSpeakers === null ? "num_speakers" : "",
    typeof espeakVoice !== "string" || !/^[!-~]{0,60}$/.test(espeakVoice) ? "espeak.voice" : "",
    lacking.length > 0 ? `phoneme_id_map with numbers for ${lacking.join(" ")}` : "",
  ].filter((name) => name !== "");
  if (missing.length > 0)
    throw new GatewayError("engine_failed", `${voice}.onnx.json describes no voice: ${missing.join(", ")}`);
  return {
    sampleRate,
    numSpeakers: Math.max(1, numSpeakers ?? 1),
    speakers: numbersIn(config["speaker_id_map"]),
    espeakVoice: String(espeakVoice),
    phonemeType: typeof config["phoneme_type"] === "string" ? config["phoneme_type"] : "espeak",
    phonemeIds,
    noiseScale: scale(inference["noise_scale"], 0.667),
    lengthScale: scale(inference["length_scale"], 1),
    noiseW: scale(inference["noise_w"], 0.8),
  };
}

/** By name or number; null for the voice's only or first speaker. Throws `invalid_request` with some that the voice has. */
export function speakerNumber(config: Speakers, speaker: string | null, voice: string): number | null {
  if (speaker === null) return null;
  // Piper checks a number with `>` where `>=` is right, so the one after the last would reach the model.
  const number = config.speakers.get(speaker) ?? (/^\d{1,6}$/.test(speaker) ? Number(speaker) : null);
  if (number !== null && number < config.numSpeakers) return config.numSpeakers > 1 ? number : null;
  const some = [...config.speakers.keys()].slice(0, 5).join(", ");
  throw new GatewayError(
    "invalid_request",
    `${voice} has no speaker ${JSON.stringify(speaker.slice(0, 60))}; it has ${config.numSpeakers}${some === "" ? "" : `: ${some}`}`,
    { param: "voice" },
  );
}

function partOf(value: unknown): Readonly<Record<string, unknown>> {
  return isJsonObject(value) ? value : {};
}

function scale(value: unknown, fallback: number): number {
  return typeof value === "number" && value >= 0 && value <= 10 ? value : fallback;
}
