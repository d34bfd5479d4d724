// The requests of Ollama's POST /api/embed and of its older POST /api/embeddings, and the vectors cut to size. Pure.

import type { KeepAlive } from "../../../core/keep-alive.ts";
import { booleanOf, type JsonObject, listOf, modelNameOf, objectOf, refuse, stringOf } from "./fields.ts";
import { contextOf, keepAliveOf, optionsOf } from "./options.ts";

export interface NativeEmbed {
  readonly model: string;
  readonly texts: readonly string[];
  /** A text that is too long is cut; otherwise it is refused. */
  readonly truncate: boolean;
  readonly dimensions: number | null;
  readonly keepAlive: KeepAlive;
  readonly numCtx?: number;
}

/** Of /api/embed; its one text, or its several, in `input`. */
export function parseEmbedRequest(value: unknown): NativeEmbed {
  const body = objectOf(value);
  const input = body["input"] ?? [];
  const texts = typeof input === "string" ? [input] : listOf(input, "input");
  // Ollama takes an empty text for none at all.
  return requestOf(body, input === "" ? [] : texts.map((text, at) => stringOf(text, `input[${at}]`)));
}

/** Of /api/embeddings; its one text in `prompt`. */
export function parseEmbeddingsRequest(value: unknown): NativeEmbed {
  const body = objectOf(value);
  const prompt = stringOf(body["prompt"] ?? "", "prompt");
  return requestOf(body, prompt === "" ? [] : [prompt]);
}

function requestOf(body: JsonObject, texts: readonly string[]): NativeEmbed {
  const dimensions = body["dimensions"] ?? 0;
  if (typeof dimensions !== "number" || !Number.isInteger(dimensions) || dimensions < 0)
    return refuse("dimensions", "must be a positive integer");
  const numCtx = contextOf(optionsOf(body)["num_ctx"]);
  return {
    model: modelNameOf(body),
    texts,
    truncate: booleanOf(body["truncate"] ?? true, "truncate"),
    dimensions: dimensions === 0 ? null : dimensions,
    keepAlive: keepAliveOf(body["keep_alive"]),
    ...(numCtx !== undefined && { numCtx }),
  };
}

/** The first dimensions of a vector, at length 1 again, as models trained to be cut need it. */
export function cutVector(vector: readonly number[], dimensions: number | null): readonly number[] {
  if (dimensions === null || dimensions >= vector.length) return vector;
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
