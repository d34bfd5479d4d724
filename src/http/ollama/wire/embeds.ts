// The texts of an embedding request, and texts and vectors cut to size. Pure.
import type { NativeEmbed } from "../../../../schemas/ollama.ts";

/** Ollama takes an empty text for none at all. */
export function textsOf(input: NativeEmbed["input"]): readonly string[] {
  return input === "" ? [] : [input ?? []].flat();
}

/** The first dimensions of a vector, at length 1 again, as models trained to be cut need it; 0: all of them. */
export function cutVector(vector: readonly number[], dimensions: number): readonly number[] {
  if (dimensions === 0 || dimensions >= vector.length) return vector;
  const kept = vector.slice(0, dimensions);
  const length = Math.hypot(...kept);
  return length === 0 ? kept : kept.map((value) => value / length);
}

/** Tokens of a text that is too long, cut to a limit; `frame` is what the tokenizer puts around an empty text. */
export function cutTokens(tokens: readonly number[], frame: readonly number[], limit: number): readonly number[] {
  if (tokens.length <= limit) return tokens;
  const last = frame.at(-1);
  const closes = last !== undefined && tokens.at(-1) === last && (frame.length > 1 || tokens[0] !== last);
  return closes ? [...tokens.slice(0, limit - 1), last] : tokens.slice(0, limit);
}
