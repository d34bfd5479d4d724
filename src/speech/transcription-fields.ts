// The fields of a form that whisper-server reads numbers from, and what it makes of them: outside of these it answers
// "stof", or that it failed. Pure.
import { GatewayError } from "../core/errors.ts";

interface Range {
  readonly least: number;
  readonly most: number;
  readonly whole?: true;
}

const anyCount: Range = { least: -1, most: 1_000_000_000, whole: true };
const anyNumber: Range = { least: -1_000_000, most: 1_000_000 };

const numbers: ReadonlyMap<string, Range> = new Map([
  ["temperature", { least: 0, most: 2 }],
  // Each step down to 1 is another try of the whole sound.
  ["temperature_inc", { least: 0, most: 2 }],
  ["beam_size", { least: -1, most: 8, whole: true }],
  ["best_of", { least: -1, most: 8, whole: true }],
  ["audio_ctx", { least: 0, most: 1500, whole: true }],
  ...["offset_t", "offset_n", "duration", "max_context", "max_len"].map((name): [string, Range] => [name, anyCount]),
  ...["word_thold", "entropy_thold", "logprob_thold", "no_speech_thold", "vad_threshold"].map(
    (name): [string, Range] => [name, anyNumber],
  ),
]);

/** A smaller one would be millions of tries. */
const leastStep = 0.05;

/** Throws `invalid_request` that names the field. */
export function checkField(name: string, value: string): void {
  const text = value.trim();
  const range = numbers.get(name);
  if (range && !isWithin(text, range)) {
    const kind = range.whole ? "a whole number" : "a number";
    throw invalid(name, `${name} must be ${kind} from ${range.least} to ${range.most}, not ${shown(text)}`);
  }
  if (name === "temperature_inc" && Number(text) !== 0 && Number(text) < leastStep)
    throw invalid(name, `temperature_inc must be 0 or at least ${leastStep}, not ${shown(text)}`);
  if (name === "vad" && /^(?:true|1|yes|y|on)$/i.test(text))
    throw invalid(name, "vad cannot be turned on: the engine runs without a model that tells speech from silence");
}

/** Whether a field that turns something on does so. */
export function isOn(value: string | undefined): boolean {
  return /^(?:true|1)$/i.test(value?.trim() ?? "");
}

function isWithin(text: string, { least, most, whole }: Range): boolean {
  const number = Number(text);
  return text !== "" && number >= least && number <= most && (!whole || Number.isInteger(number));
}

function shown(text: string): string {
  return text === "" ? "nothing" : JSON.stringify(text.slice(0, 60));
}

function invalid(param: string, why: string): GatewayError {
  return new GatewayError("invalid_request", why, { param });
}
