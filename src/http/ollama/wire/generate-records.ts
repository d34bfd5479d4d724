// The records of Ollama's POST /api/generate, made from those of a chat, and the engine's own completion chunks as ones of
// a chat completion. Pure.
import { isJsonObject } from "../../../core/json.ts";

import { type ChatRecord, isErrorRecord } from "./chat-records.ts";
import { type JsonObject } from "./fields.ts";

export function generateRecord(record: ChatRecord) {
  if (isErrorRecord(record)) return record;
  const { message, ...rest } = record;
  const { model, created_at, ...last } = rest;
  return {
    model,
    created_at,
    response: message.content,
    ...(message.thinking !== undefined && { thinking: message.thinking }),
    ...last,
    // The conversation in tokens, for a next request. Empty: the engine has a cache of its own.
    ...(rest.done && rest.done_reason !== "load" && rest.done_reason !== "unload" && { context: [] }),
  };
}

/** A chunk of the engine's /completion or /infill as one of a chat completion; an error chunk as it is. */
export function asChatChunk(chunk: unknown): unknown {
  if (!isJsonObject(chunk) || "error" in chunk) return chunk;
  const { content, stop, stop_type, timings, tokens_evaluated, tokens_predicted, completion_probabilities } = chunk;
  const ended = stop === true;
  const choice: JsonObject = {
    index: 0,
    delta: { content },
    finish_reason: ended ? (stop_type === "limit" ? "length" : "stop") : null,
    ...(Array.isArray(completion_probabilities) && { logprobs: { content: completion_probabilities } }),
  };
  if (!ended) return { choices: [choice] };
  return {
    choices: [choice],
    timings,
    usage: { prompt_tokens: tokens_evaluated, completion_tokens: tokens_predicted },
  };
}
