// Translates the body of Ollama's POST /api/chat into a chat completion request for llama-server.
// Pure; which model it is, whether it is loaded and how the answer goes back is the business of others.

import { type KeepAlive, parseKeepAlive } from "../../core/keep-alive.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

export type Think = boolean | "low" | "medium" | "high" | "max";

export interface UpstreamToolCall {
  readonly id: string;
  readonly type: "function";
  /** `arguments` is JSON text. */
  readonly function: { readonly name: string; readonly arguments: string };
}

export type UpstreamPart =
  | { readonly type: "text"; readonly text: string }
  | { readonly type: "image_url"; readonly image_url: { readonly url: string } };

export interface UpstreamMessage {
  readonly role: string;
  readonly content: string | readonly UpstreamPart[];
  readonly reasoning_content?: string;
  readonly tool_calls?: readonly UpstreamToolCall[];
  readonly tool_call_id?: string;
  /** The tool's name, of a result; some chat templates print it. */
  readonly name?: string;
}

/** It always streams: llama.cpp's router goes on with an answer that is not streamed when the client has left. */
export interface UpstreamChat {
  readonly model: string;
  readonly messages: readonly UpstreamMessage[];
  readonly stream: true;
  readonly stream_options: { readonly include_usage: true };
  /** Tools, format, sampling and thinking, where given. */
  readonly [key: string]: unknown;
}

export interface NativeChat {
  readonly ok: true;
  /** As the client wrote it. */
  readonly model: string;
  /** With no messages there is nothing to answer: the model is to be loaded, or (`keep_alive: 0`) unloaded. */
  readonly purpose: "chat" | "load" | "unload";
  /** Whether the client wants the answer in pieces. */
  readonly stream: boolean;
  readonly keepAlive: KeepAlive;
  /** undefined: the model's own habit. */
  readonly think: Think | undefined;
  /** The context size that the client wants in force. */
  readonly numCtx?: number;
  readonly upstream: UpstreamChat;
}

export type NativeChatResult = NativeChat | { readonly ok: false; readonly message: string };

/** A field of the request is not what it must be; the message names it. */
class FieldError extends Error {
  override readonly name = "FieldError";
}

function refuse(field: string, must: string): never {
  throw new FieldError(`${field} ${must}`);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function stringOf(value: unknown, field: string): string {
  return typeof value === "string" ? value : refuse(field, "must be a string");
}

function numberOf(value: unknown, field: string): number {
  return typeof value === "number" && Number.isFinite(value) ? value : refuse(field, "must be a number");
}

function booleanOf(value: unknown, field: string): boolean {
  return typeof value === "boolean" ? value : refuse(field, "must be true or false");
}

function listOf(value: unknown, field: string): readonly unknown[] {
  return Array.isArray(value) ? value : refuse(field, "must be an array");
}

/** The first characters of the base64 text of the formats that vision models take. */
const imagePrefixes = [
  ["png", /^iVBORw0KGgo/],
  ["jpeg", /^\/9j\//],
  ["gif", /^R0lGODlh|^R0lGODdh/],
  ["webp", /^UklGR.{7}RUJQ/],
] as const;

function imageOf(value: unknown, field: string): UpstreamPart {
  const text = stringOf(value, field);
  if (text.startsWith("data:image/")) return { type: "image_url", image_url: { url: text } };
  const format = imagePrefixes.find(([, prefix]) => prefix.test(text))?.[0];
  if (format === undefined) return refuse(field, "must be a PNG, JPEG, GIF or WebP image in base64");
  return { type: "image_url", image_url: { url: `data:image/${format};base64,${text}` } };
}

function argumentsOf(value: unknown, field: string): string {
  if (value === undefined || value === null) return "{}";
  return isObject(value) ? JSON.stringify(value) : refuse(field, "must be an object");
}

/**
 * Ollama's tool calls need no ids, and its results name the tool; a chat completion matches them by id. So calls
 * without an id are numbered by their place in the conversation, which gives the same ids, and with them the same
 * prompt for the engine's cache, when the conversation is sent again.
 */
function messagesOf(list: readonly unknown[]): readonly UpstreamMessage[] {
  const calls = list.flatMap((message) => (isObject(message) ? (message["tool_calls"] ?? []) : []));
  const givenIds = new Set(calls.map((call) => (isObject(call) ? call["id"] : undefined)));
  let numbered = 0;
  let unanswered: UpstreamToolCall[] = [];

  function callOf(value: unknown, field: string): UpstreamToolCall {
    const called = isObject(value) ? value["function"] : undefined;
    if (!isObject(value) || !isObject(called)) return refuse(`${field}.function`, "must be an object");
    const name = stringOf(called["name"], `${field}.function.name`);
    let id = stringOf(value["id"] ?? "", `${field}.id`);
    while (id === "" || (id !== value["id"] && givenIds.has(id))) id = `call_${numbered++}`;
    const text = argumentsOf(called["arguments"], `${field}.function.arguments`);
    return { id, type: "function", function: { name, arguments: text } };
  }

  function answerTo(id: string, tool: string): string | undefined {
    const at = unanswered.findIndex((call) =>
      id === "" ? tool === "" || call.function.name === tool : call.id === id,
    );
    const call = at < 0 ? undefined : unanswered.splice(at, 1)[0];
    return id === "" ? call?.id : id;
  }

  return list.map((message, index): UpstreamMessage => {
    const field = `messages[${index}]`;
    if (!isObject(message)) return refuse(field, "must be an object");
    const role = message["role"];
    if (role !== "system" && role !== "user" && role !== "assistant" && role !== "tool") {
      return refuse(`${field}.role`, "must be system, user, assistant or tool");
    }
    const text = stringOf(message["content"] ?? "", `${field}.content`);
    const images = listOf(message["images"] ?? [], `${field}.images`).map((image, at) =>
      imageOf(image, `${field}.images[${at}]`),
    );
    const parts: readonly UpstreamPart[] = text === "" ? images : [...images, { type: "text", text }];
    const content = images.length === 0 ? text : parts;
    if (role === "tool") {
      const name = stringOf(message["tool_name"] ?? message["name"] ?? "", `${field}.tool_name`);
      const id = answerTo(stringOf(message["tool_call_id"] ?? "", `${field}.tool_call_id`), name);
      return { role, content, ...(id !== undefined && { tool_call_id: id }), ...(name !== "" && { name }) };
    }
    if (role !== "assistant") return { role, content };
    const thinking = stringOf(message["thinking"] ?? "", `${field}.thinking`);
    const calls = listOf(message["tool_calls"] ?? [], `${field}.tool_calls`).map((call, at) =>
      callOf(call, `${field}.tool_calls[${at}]`),
    );
    if (calls.length > 0) unanswered = [...calls];
    return {
      role,
      content,
      ...(thinking !== "" && { reasoning_content: thinking }),
      ...(calls.length > 0 && { tool_calls: calls }),
    };
  });
}

/** Options that llama-server takes under the same name. Those of loading (`num_gpu`, `num_batch`, …) are not passed. */
const integerOptions = ["top_k", "repeat_last_n", "seed", "mirostat"];
const numberOptions = "temperature top_p min_p typical_p repeat_penalty presence_penalty frequency_penalty".split(" ");
const samplingOptions = [...integerOptions, ...numberOptions, "mirostat_tau", "mirostat_eta"];

function samplingOf(options: JsonObject): JsonObject {
  const sampling: Record<string, unknown> = {};
  for (const name of samplingOptions) {
    if (options[name] === undefined || options[name] === null) continue;
    const value = numberOf(options[name], `options.${name}`);
    sampling[name] = integerOptions.includes(name) ? Math.trunc(value) : value;
  }
  // 0, like anything negative, is no limit to Ollama; llama-server would answer nothing.
  const limit = Math.trunc(numberOf(options["num_predict"] ?? -1, "options.num_predict"));
  if (limit > 0) sampling["max_tokens"] = limit;
  const stop = options["stop"] ?? [];
  const stops = typeof stop === "string" ? [stop] : listOf(stop, "options.stop");
  if (stops.length > 0) sampling["stop"] = stops.map((text, at) => stringOf(text, `options.stop[${at}]`));
  return sampling;
}

function contextOf(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number" && Number.isSafeInteger(value) && value > 0) return value;
  return refuse("options.num_ctx", "must be a positive integer");
}

function formatOf(format: unknown): JsonObject {
  if (format === undefined || format === null || format === "") return {};
  if (format === "json") return { response_format: { type: "json_object" } };
  if (!isObject(format)) return refuse("format", 'must be "json" or a JSON schema');
  return { response_format: { type: "json_schema", json_schema: { name: "answer", strict: true, schema: format } } };
}

const thinkLevels: ReadonlySet<unknown> = new Set<Think>([true, false, "low", "medium", "high", "max"]);

function isThink(value: unknown): value is Think {
  return thinkLevels.has(value);
}

function thinkingOf(think: Think | undefined): JsonObject {
  if (think === undefined) return {};
  if (typeof think === "boolean") return { chat_template_kwargs: { enable_thinking: think } };
  const effort = think === "max" ? "high" : think;
  // Older builds of llama-server read the effort from the template's arguments only, newer ones from the field too.
  return { chat_template_kwargs: { enable_thinking: true, reasoning_effort: effort }, reasoning_effort: effort };
}

function logprobsOf(body: JsonObject): JsonObject {
  const top = numberOf(body["top_logprobs"] ?? 0, "top_logprobs");
  if (!Number.isInteger(top) || top < 0 || top > 20) return refuse("top_logprobs", "must be an integer from 0 to 20");
  if (!booleanOf(body["logprobs"] ?? false, "logprobs")) return {};
  return { logprobs: true, ...(top > 0 && { top_logprobs: top }) };
}

function translate(body: JsonObject): NativeChat {
  const model = stringOf(body["model"] ?? "", "model");
  if (model === "") return refuse("model", "is required");
  const keepAlive = parseKeepAlive(body["keep_alive"]);
  if (keepAlive === null) return refuse("keep_alive", 'must be seconds, or a duration such as "5m"');
  const options = body["options"] ?? {};
  if (!isObject(options)) return refuse("options", "must be an object");
  const think = body["think"] ?? undefined;
  if (think !== undefined && !isThink(think)) {
    return refuse("think", 'must be true, false, "low", "medium", "high" or "max"');
  }
  const numCtx = contextOf(options["num_ctx"]);
  const messages = messagesOf(listOf(body["messages"] ?? [], "messages"));
  const tools = listOf(body["tools"] ?? [], "tools");
  const badTool = tools.findIndex((tool) => !isObject(tool));
  if (badTool >= 0) return refuse(`tools[${badTool}]`, "must be an object");
  const unload = keepAlive.kind === "seconds" && keepAlive.seconds === 0;
  return {
    ok: true,
    model,
    purpose: messages.length > 0 ? "chat" : unload ? "unload" : "load",
    stream: booleanOf(body["stream"] ?? true, "stream"),
    keepAlive,
    think,
    ...(numCtx !== undefined && { numCtx }),
    upstream: {
      model,
      messages,
      stream: true,
      stream_options: { include_usage: true },
      ...(tools.length > 0 && { tools }),
      ...formatOf(body["format"]),
      ...samplingOf(options),
      ...thinkingOf(think),
      ...logprobsOf(body),
    },
  };
}

/** The request in `body`, a parsed JSON value; where a field is not what it must be, a message that names it. */
export function parseChatRequest(body: unknown): NativeChatResult {
  try {
    return isObject(body) ? translate(body) : refuse("the body", "must be a JSON object");
  } catch (error) {
    if (error instanceof FieldError) return { ok: false, message: error.message };
    throw error;
  }
}
