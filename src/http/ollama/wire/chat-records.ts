// Translates the chunks of a completion stream into the records of Ollama's POST /api/chat and /api/generate. Pure: the clocks
// come in, the records go out as objects. It keeps counts and unfinished tool calls, never the text.
import { GatewayError } from "../../../core/errors.ts";
import { isJsonObject, parseJson } from "../../../core/json.ts";
import type { JsonObject } from "./requests.ts";

interface NativeToolCall {
  readonly id?: string;
  readonly function: { readonly index: number; readonly name: string; readonly arguments: JsonObject };
}

export interface ChatRecord extends Partial<ReturnType<typeof figuresOf>> {
  readonly model: string;
  /** RFC 3339. */
  readonly created_at: string;
  readonly message: {
    readonly role: "assistant";
    readonly content: string;
    readonly thinking?: string;
    readonly tool_calls?: readonly NativeToolCall[];
  };
  /** Of the last record only. */
  readonly done_reason?: DoneReason;
  readonly done: boolean;
  readonly logprobs?: readonly unknown[];
}

type DoneReason = "stop" | "length" | "load" | "unload";

export interface ChatRecordsDeps {
  /** The name that the client used. */
  readonly model: string;
  /** The time now in RFC 3339. */
  readonly createdAt: () => string;
  /** A monotonic clock in milliseconds. */
  readonly now: () => number;
  /** Alternatives to each token that the client requests. */
  readonly topLogprobs: number;
}

const brokeOff = "the engine broke off";

const asObject = (value: unknown): JsonObject => (isJsonObject(value) ? value : {});
const asText = (value: unknown): string => (typeof value === "string" ? value : "");
const asList = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
const asNumber = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

export function nanoseconds(milliseconds: number): number {
  return Math.max(0, Math.round(milliseconds * 1e6));
}

export type ChatRecords = ReturnType<typeof createChatRecords>;

export function createChatRecords({ model, createdAt, now, topLogprobs }: ChatRecordsDeps) {
  const startedAt = now();
  const calls = createToolCalls();
  let firstAt: number | undefined;
  let reason: "stop" | "length" | undefined;
  let failure: string | undefined;
  let timings: JsonObject = {};
  let usage: JsonObject = {};

  function piece(message: Partial<ChatRecord["message"]>, logprobs: readonly unknown[]): ChatRecord {
    return {
      model,
      created_at: createdAt(),
      message: { role: "assistant", content: "", ...message },
      done: false,
      ...(logprobs.length > 0 && { logprobs }),
    };
  }

  function finish(theirs: string): readonly ChatRecord[] {
    reason = theirs === "length" ? "length" : "stop";
    const finished = calls.finish(reason);
    if (typeof finished === "string") failure = finished;
    else if (finished.length > 0) return [piece({ tool_calls: finished }, [])];
    return [];
  }

  return {
    piece,
    /** Nothing follows. */
    hasFailed: () => failure !== undefined,
    /** The records that one parsed chunk makes; none after one that is an error. */
    push(chunk: unknown): readonly ChatRecord[] {
      if (failure !== undefined) return [];
      firstAt ??= now();
      const { error, choices, ...body } = asObject(chunk);
      if (error !== undefined && error !== null) {
        failure = asText(error) || asText(asObject(error)["message"]) || brokeOff;
        return [];
      }
      // Newer builds put both into the usage chunk, others the timings into the one with the finish reason.
      if (body["timings"]) timings = asObject(body["timings"]);
      if (body["usage"]) usage = asObject(body["usage"]);
      const choice = asObject(asList(choices).find((one) => (asObject(one)["index"] ?? 0) === 0));
      const delta = asObject(choice["delta"]);
      const content = asText(delta["content"]);
      const thinking = asText(delta["reasoning_content"]);
      const logprobs = asList(asObject(choice["logprobs"])["content"]).map((token) => tokenOf(token, topLogprobs));
      const isEmpty = content === "" && thinking === "" && logprobs.length === 0;
      const records = isEmpty ? [] : [piece({ content, ...(thinking !== "" && { thinking }) }, logprobs)];
      for (const call of asList(delta["tool_calls"])) calls.add(call);
      const theirs = choice["finish_reason"];
      return typeof theirs === "string" ? [...records, ...finish(theirs)] : records;
    },
    /** The stream is over, at its end mark or without: the last record, or why the answer is not whole. */
    end(): ChatRecord | GatewayError {
      if (failure !== undefined || reason === undefined)
        return new GatewayError("upstream_failed", failure ?? brokeOff);
      const endedAt = now();
      const figures = figuresOf(timings, usage, { startedAt, firstAt: firstAt ?? endedAt, endedAt });
      return chatEnd(model, createdAt(), reason, figures);
    },
  };
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
      return finished;
    },
  };
}

function argumentsIn(text: string): JsonObject | null {
  const value = parseJson(text.trim() || "{}");
  return isJsonObject(value) ? value : null;
}

/** Figures of the last record, from the engine's own, and where it gives none by the clock. Durations are in nanoseconds. */
function figuresOf(
  timings: JsonObject,
  usage: JsonObject,
  { startedAt, firstAt, endedAt }: Readonly<Record<"startedAt" | "firstAt" | "endedAt", number>>,
) {
  const promptMs = asNumber(timings["prompt_ms"]);
  const prompted = (asNumber(timings["prompt_n"]) ?? 0) + (asNumber(timings["cache_n"]) ?? 0);
  return {
    total_duration: nanoseconds(endedAt - startedAt),
    /** Queueing and loading: the time before the first chunk that was not spent on the prompt. */
    load_duration: promptMs === undefined ? 0 : nanoseconds(firstAt - startedAt - promptMs),
    prompt_eval_count: asNumber(usage["prompt_tokens"]) ?? prompted,
    prompt_eval_duration: nanoseconds(promptMs ?? firstAt - startedAt),
    eval_count: asNumber(usage["completion_tokens"]) ?? asNumber(timings["predicted_n"]) ?? 0,
    eval_duration: nanoseconds(asNumber(timings["predicted_ms"]) ?? endedAt - firstAt),
  };
}

/** The last record of an answer, or, without figures, the only one of a request that loads or unloads a model. */
export function chatEnd(model: string, createdAt: string, reason: DoneReason, figures: object = {}): ChatRecord {
  const message = { role: "assistant", content: "" } as const;
  return { model, created_at: createdAt, message, done_reason: reason, done: true, ...figures };
}

/** The single record of an answer that is not streamed: its last one, with the message of all. */
export function merged(pieces: readonly ChatRecord[], last: ChatRecord): ChatRecord {
  const thinking = pieces.map(({ message }) => message.thinking ?? "").join("");
  const calls = pieces.flatMap(({ message }) => message.tool_calls ?? []);
  const logprobs = pieces.flatMap((piece) => piece.logprobs ?? []);
  return {
    ...last,
    message: {
      role: "assistant",
      content: pieces.map(({ message }) => message.content).join(""),
      ...(thinking !== "" && { thinking }),
      ...(calls.length > 0 && { tool_calls: calls }),
    },
    ...(logprobs.length > 0 && { logprobs }),
  };
}

/** The record of a generate. */
export function generateRecord({ model, created_at, message, ...last }: ChatRecord): object {
  const isAnswer = last.done_reason === "stop" || last.done_reason === "length";
  return {
    model,
    created_at,
    response: message.content,
    ...(message.thinking !== undefined && { thinking: message.thinking }),
    ...last,
    // The conversation in tokens, for a next request. Empty: the engine has a cache of its own.
    ...(isAnswer && { context: [] }),
  };
}

/** A chunk of the engine's /completion or /infill as one of a chat completion; an error chunk as it is. */
export function asChatChunk(chunk: unknown): unknown {
  const { error, content, stop, stop_type, timings, ...rest } = asObject(chunk);
  if (error !== undefined) return chunk;
  const logprobs = { content: rest["completion_probabilities"] };
  if (stop !== true) return { choices: [{ delta: { content }, logprobs }] };
  return {
    choices: [{ delta: { content }, logprobs, finish_reason: stop_type === "limit" ? "length" : "stop" }],
    timings,
    usage: { prompt_tokens: rest["tokens_evaluated"], completion_tokens: rest["tokens_predicted"] },
  };
}
