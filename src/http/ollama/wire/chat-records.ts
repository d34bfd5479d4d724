// Translates the chunks of a chat completion stream into the records of Ollama's POST /api/chat.
// Pure: the clocks come in, the records go out as objects. It keeps counts and unfinished tool calls, never the text.
import { isJsonObject } from "../../../core/merge-patch.ts";

import type { JsonObject } from "./fields.ts";

export interface NativeToolCall {
  readonly id?: string;
  readonly function: { readonly index: number; readonly name: string; readonly arguments: JsonObject };
}

export interface NativeMessage {
  readonly role: "assistant";
  readonly content: string;
  readonly thinking?: string;
  readonly tool_calls?: readonly NativeToolCall[];
}

export interface ChatPiece {
  readonly model: string;
  /** RFC 3339. */
  readonly created_at: string;
  readonly message: NativeMessage;
  readonly done: false;
  readonly logprobs?: readonly unknown[];
}

/** What the last record tells of the answer. Durations are in nanoseconds. */
export interface ChatFigures {
  readonly total_duration: number;
  /** Queueing and loading: the time before the first chunk that was not spent on the prompt. */
  readonly load_duration: number;
  readonly prompt_eval_count: number;
  readonly prompt_eval_duration: number;
  readonly eval_count: number;
  readonly eval_duration: number;
}

export interface ChatEnd extends Omit<ChatPiece, "done">, Partial<ChatFigures> {
  readonly done_reason: "stop" | "length" | "load" | "unload";
  readonly done: true;
}

export interface ErrorRecord {
  readonly error: string;
}

export type ChatRecord = ChatPiece | ChatEnd | ErrorRecord;

export function isErrorRecord(record: ChatRecord): record is ErrorRecord {
  return "error" in record;
}

export interface ChatRecordsDeps {
  /** The name that the client used. */
  readonly model: string;
  /** The time now in RFC 3339. */
  readonly createdAt: () => string;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  /** When the request came in, by that clock; the default is now. */
  readonly startedAt?: number;
  /** How many alternatives to each token the client wants to see; default 0. */
  readonly topLogprobs?: number;
}

export interface ChatRecords {
  /** The records that one parsed chunk makes. Nothing comes after an error record. */
  push(chunk: unknown): readonly ChatRecord[];
  /** The stream is over, at its end mark or without: the last record, or an error record where the answer was cut. */
  end(): readonly ChatRecord[];
}

interface PendingCall {
  id: string;
  name: string;
  text: string;
}

const brokeOff = "the engine broke off";

function objectOf(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function numberOf(value: unknown): number | undefined {
  return typeof value === "number" && Number.isFinite(value) ? value : undefined;
}

export function nanoseconds(milliseconds: number): number {
  return Math.max(0, Math.round(milliseconds * 1e6));
}

function without(object: JsonObject, key: string): JsonObject {
  const { [key]: _left, ...rest } = object;
  return rest;
}

function errorText(error: unknown): string {
  if (typeof error === "string" && error !== "") return error;
  return textOf(objectOf(error)["message"]) || brokeOff;
}

/** The call as Ollama has it, its arguments an object; null where the model did not write one. */
function finishedCall(call: PendingCall, index: number): NativeToolCall | null {
  let parsed: unknown;
  try {
    parsed = JSON.parse(call.text.trim() === "" ? "{}" : call.text);
  } catch {
    return null;
  }
  if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) return null;
  const described = { index, name: call.name, arguments: parsed as JsonObject };
  return { ...(call.id !== "" && { id: call.id }), function: described };
}

export function createChatRecords(deps: ChatRecordsDeps): ChatRecords {
  const startedAt = deps.startedAt ?? deps.now();
  const calls = new Map<number, PendingCall>();
  let firstAt: number | undefined;
  let reason: "stop" | "length" | undefined;
  let over = false;
  let timings: JsonObject = {};
  let usage: JsonObject = {};

  function piece(message: Omit<NativeMessage, "role">, logprobs: readonly unknown[]): ChatPiece {
    return {
      model: deps.model,
      created_at: deps.createdAt(),
      message: { role: "assistant", ...message },
      done: false,
      ...(logprobs.length > 0 && { logprobs }),
    };
  }

  /** The engine numbers its tokens, and tells of one alternative at least. */
  function tokenOf(value: unknown): JsonObject {
    const { id: _id, top_logprobs: top, ...token } = objectOf(value);
    const wanted = listOf(top).slice(0, deps.topLogprobs ?? 0);
    return {
      ...token,
      ...(wanted.length > 0 && { top_logprobs: wanted.map((other) => without(objectOf(other), "id")) }),
    };
  }

  function fail(text: string): readonly ChatRecord[] {
    over = true;
    return [{ error: text }];
  }

  function addCall(delta: unknown): void {
    const { index, id, function: part } = objectOf(delta);
    const at = numberOf(index) ?? calls.size;
    const call = calls.get(at) ?? { id: "", name: "", text: "" };
    call.id ||= textOf(id);
    call.name ||= textOf(objectOf(part)["name"]);
    call.text += textOf(objectOf(part)["arguments"]);
    calls.set(at, call);
  }

  function finishCalls(): readonly ChatRecord[] {
    if (calls.size === 0) return [];
    const finished: NativeToolCall[] = [];
    for (const call of [...calls.entries()].sort(([a], [b]) => a - b).map(([, value]) => value)) {
      const done = finishedCall(call, finished.length);
      // An answer that ran into its limit inside a call has not finished it; `length` says so, and it is no failure.
      if (done === null && reason === "length") continue;
      if (done === null) return fail(`the model called the tool '${call.name}' with arguments that are no JSON object`);
      finished.push(done);
    }
    calls.clear();
    return finished.length === 0 ? [] : [piece({ content: "", tool_calls: finished }, [])];
  }

  function figures(): ChatFigures {
    const now = deps.now();
    const first = firstAt ?? now;
    const promptMs = numberOf(timings["prompt_ms"]);
    const predictedMs = numberOf(timings["predicted_ms"]) ?? now - first;
    const prompted = (numberOf(timings["prompt_n"]) ?? 0) + (numberOf(timings["cache_n"]) ?? 0);
    return {
      total_duration: nanoseconds(now - startedAt),
      load_duration: promptMs === undefined ? 0 : nanoseconds(first - startedAt - promptMs),
      prompt_eval_count: numberOf(usage["prompt_tokens"]) ?? prompted,
      prompt_eval_duration: nanoseconds(promptMs ?? first - startedAt),
      eval_count: numberOf(usage["completion_tokens"]) ?? numberOf(timings["predicted_n"]) ?? 0,
      eval_duration: nanoseconds(predictedMs),
    };
  }

  return {
    push(chunk) {
      if (over) return [];
      firstAt ??= deps.now();
      const body = objectOf(chunk);
      if (body["error"] !== undefined && body["error"] !== null) return fail(errorText(body["error"]));
      // Newer builds put both into the usage chunk, others the timings into the one with the finish reason.
      if (body["timings"]) timings = objectOf(body["timings"]);
      if (body["usage"]) usage = objectOf(body["usage"]);
      const choice = objectOf(listOf(body["choices"]).find((one) => (objectOf(one)["index"] ?? 0) === 0));
      const delta = objectOf(choice["delta"]);
      const content = textOf(delta["content"]);
      const thinking = textOf(delta["reasoning_content"]);
      const logprobs = listOf(objectOf(choice["logprobs"])["content"]).map(tokenOf);
      const records: ChatRecord[] = [];
      if (content !== "" || thinking !== "" || logprobs.length > 0) {
        records.push(piece({ content, ...(thinking !== "" && { thinking }) }, logprobs));
      }
      for (const call of listOf(delta["tool_calls"])) addCall(call);
      const finish = choice["finish_reason"];
      if (typeof finish === "string") {
        reason = finish === "length" ? "length" : "stop";
        records.push(...finishCalls());
      }
      return records;
    },
    end() {
      if (over) return [];
      if (reason === undefined) return fail(brokeOff);
      over = true;
      return [chatEnd(deps.model, deps.createdAt(), reason, figures())];
    },
  };
}

/** The last record of an answer, or, without figures, the only one of a request that loads or unloads a model. */
export function chatEnd(
  model: string,
  createdAt: string,
  reason: ChatEnd["done_reason"],
  figures: Partial<ChatFigures> = {},
): ChatEnd {
  const message = { role: "assistant", content: "" } as const;
  return { model, created_at: createdAt, message, done_reason: reason, done: true, ...figures };
}

/** The single record of an answer that is not streamed, merged from all its records; an error record wins. */
export function collect(records: readonly ChatRecord[]): ChatEnd | ErrorRecord {
  const error = records.find(isErrorRecord);
  if (error) return error;
  const parts = records.filter((record): record is ChatPiece | ChatEnd => !isErrorRecord(record));
  const last = parts.at(-1);
  if (!last?.done) return { error: brokeOff };
  const thinking = parts.map((part) => part.message.thinking ?? "").join("");
  const calls = parts.flatMap((part) => part.message.tool_calls ?? []);
  const logprobs = parts.flatMap((part) => part.logprobs ?? []);
  return {
    ...last,
    message: {
      role: "assistant",
      content: parts.map((part) => part.message.content).join(""),
      ...(thinking !== "" && { thinking }),
      ...(calls.length > 0 && { tool_calls: calls }),
    },
    ...(logprobs.length > 0 && { logprobs }),
  };
}
