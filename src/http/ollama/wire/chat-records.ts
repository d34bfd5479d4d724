// Translates the chunks of a chat completion stream into the records of Ollama's POST /api/chat.
// Pure: the clocks come in, the records go out as objects. It keeps counts and unfinished tool calls, never the text.
import { isJsonObject } from "../../../core/json.ts";
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

/** Figures of the last record. Durations are in nanoseconds. */
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
  /** Alternatives to each token that the client requests; default 0. */
  readonly topLogprobs?: number;
}

const brokeOff = "the engine broke off";

const asObject = (value: unknown): JsonObject => (isJsonObject(value) ? value : {});
const asText = (value: unknown): string => (typeof value === "string" ? value : "");
const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const asNumber = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isFinite(value) ? value : undefined;

export function nanoseconds(milliseconds: number): number {
  return Math.max(0, Math.round(milliseconds * 1e6));
}

export type ChatRecords = ReturnType<typeof createChatRecords>;

export function createChatRecords({ model, createdAt, now, startedAt = now(), topLogprobs = 0 }: ChatRecordsDeps) {
  const calls = createToolCalls();
  let firstAt: number | undefined;
  let reason: "stop" | "length" | undefined;
  let over = false;
  let timings: JsonObject = {};
  let usage: JsonObject = {};

  function piece(message: Partial<NativeMessage>, logprobs: readonly unknown[]): ChatPiece {
    return {
      model,
      created_at: createdAt(),
      message: { role: "assistant", content: "", ...message },
      done: false,
      ...(logprobs.length > 0 && { logprobs }),
    };
  }

  function fail(text: string): readonly ChatRecord[] {
    over = true;
    return [{ error: text }];
  }

  function finish(theirs: string): readonly ChatRecord[] {
    reason = theirs === "length" ? "length" : "stop";
    const tool_calls = calls.finish(reason);
    if (typeof tool_calls === "string") return fail(tool_calls);
    return tool_calls.length === 0 ? [] : [piece({ tool_calls }, [])];
  }

  return {
    /** The records that one parsed chunk makes. Nothing comes after an error record. */
    push(chunk: unknown): readonly ChatRecord[] {
      if (over) return [];
      firstAt ??= now();
      const body = asObject(chunk);
      if (body["error"] !== undefined && body["error"] !== null) return fail(errorText(body["error"]));
      // Newer builds put both into the usage chunk, others the timings into the one with the finish reason.
      if (body["timings"]) timings = asObject(body["timings"]);
      if (body["usage"]) usage = asObject(body["usage"]);
      const choice = asObject(asList(body["choices"]).find((one) => (asObject(one)["index"] ?? 0) === 0));
      const delta = asObject(choice["delta"]);
      const content = asText(delta["content"]);
      const thinking = asText(delta["reasoning_content"]);
      const tokens = asList(asObject(choice["logprobs"])["content"]);
      const logprobs = tokens.map((token) => tokenOf(token, topLogprobs));
      const isEmpty = content === "" && thinking === "" && logprobs.length === 0;
      const records = isEmpty ? [] : [piece({ content, ...(thinking !== "" && { thinking }) }, logprobs)];
      for (const call of asList(delta["tool_calls"])) calls.add(call);
      const theirs = choice["finish_reason"];
      return typeof theirs === "string" ? [...records, ...finish(theirs)] : records;
    },
    /** The stream is over, at its end mark or without: the last record, or an error record where the answer was cut. */
    end(): readonly ChatRecord[] {
      if (over) return [];
      if (reason === undefined) return fail(brokeOff);
      over = true;
      const endedAt = now();
      const figures = figuresOf(timings, usage, { startedAt, firstAt: firstAt ?? endedAt, endedAt });
      return [chatEnd(model, createdAt(), reason, figures)];
    },
  };
}

function errorText(error: unknown): string {
  return asText(error) || asText(asObject(error)["message"]) || brokeOff;
}

/** The engine numbers its tokens, and sends one alternative at least. */
function tokenOf(value: unknown, topLogprobs: number): JsonObject {
  const { id: _id, top_logprobs: top, ...token } = asObject(value);
  const wanted = asList(top).slice(0, topLogprobs).map(asObject);
  return { ...token, ...(wanted.length > 0 && { top_logprobs: wanted.map(({ id: _number, ...other }) => other) }) };
}

/** Tool calls that are put together from their deltas. */
function createToolCalls() {
  const calls = new Map<number, { id: string; name: string; text: string }>();
  return {
    add: (delta: unknown): void => {
      const { index, id, function: part } = asObject(delta);
      const at = asNumber(index) ?? calls.size;
      const call = calls.get(at) ?? { id: "", name: "", text: "" };
      call.id ||= asText(id);
      call.name ||= asText(asObject(part)["name"]);
      call.text += asText(asObject(part)["arguments"]);
      calls.set(at, call);
    },
    /** The calls as Ollama has them, or why there are none. */
    finish: (reason: "stop" | "length"): readonly NativeToolCall[] | string => {
      const finished: NativeToolCall[] = [];
      for (const [, { id, name, text }] of [...calls].sort(([a], [b]) => a - b)) {
        const given = argumentsIn(text);
        // An answer that ran into its limit inside a call has not finished it; `length` is the sign of that, and no failure.
        if (given === null && reason === "length") continue;
        if (given === null) return `the model called the tool '${name}' with arguments that are no JSON object`;
        finished.push({ ...(id !== "" && { id }), function: { index: finished.length, name, arguments: given } });
      }
      calls.clear();
      return finished;
    },
  };
}

function argumentsIn(text: string): JsonObject | null {
  try {
    const value: unknown = JSON.parse(text.trim() || "{}");
    return isJsonObject(value) ? value : null;
  } catch {
    return null;
  }
}

/** From the engine's own figures, and where it gives none by the clock. */
function figuresOf(
  timings: JsonObject,
  usage: JsonObject,
  { startedAt, firstAt, endedAt }: Readonly<Record<"startedAt" | "firstAt" | "endedAt", number>>,
): ChatFigures {
  const promptMs = asNumber(timings["prompt_ms"]);
  const prompted = (asNumber(timings["prompt_n"]) ?? 0) + (asNumber(timings["cache_n"]) ?? 0);
  return {
    total_duration: nanoseconds(endedAt - startedAt),
    load_duration: promptMs === undefined ? 0 : nanoseconds(firstAt - startedAt - promptMs),
    prompt_eval_count: asNumber(usage["prompt_tokens"]) ?? prompted,
    prompt_eval_duration: nanoseconds(promptMs ?? firstAt - startedAt),
    eval_count: asNumber(usage["completion_tokens"]) ?? asNumber(timings["predicted_n"]) ?? 0,
    eval_duration: nanoseconds(asNumber(timings["predicted_ms"]) ?? endedAt - firstAt),
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
