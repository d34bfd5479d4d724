// What Ollama's generating requests have in common: options, format, thinking, log probabilities and how long the model
// stays. Translated into what llama-server takes. Pure.

import { isJsonObject } from "../../../core/json.ts";
import { type KeepAlive, parseKeepAlive } from "../../../core/keep-alive.ts";
import { booleanOf, type JsonObject, listOf, modelNameOf, numberOf, refuse, stringOf } from "./fields.ts";

export type Think = boolean | "low" | "medium" | "high" | "max";

/** What the model has to be able to do for a request. */
export type Need = "completion" | "tools" | "insert" | "vision" | "thinking";

export interface CommonRequest {
  /** As the client wrote it. */
  readonly model: string;
  /** The answer comes in pieces. */
  readonly stream: boolean;
  readonly keepAlive: KeepAlive;
  /** undefined: the model's own habit. */
  readonly think: Think | undefined;
  /** Alternatives to each token that the client requests. */
  readonly topLogprobs: number;
  /** The requested context size. */
  readonly numCtx?: number;
}

/** The same settings in the words of the engine's chat completions and of its own completions. */
export interface EngineSettings {
  readonly chat: JsonObject;
  readonly plain: JsonObject;
}

/** Options that llama-server takes under the same name. Those of loading (`num_gpu`, `num_batch`, …) are not passed. */
const integerOptions = ["top_k", "repeat_last_n", "seed", "mirostat"];
const numberOptions = "temperature top_p min_p typical_p repeat_penalty presence_penalty frequency_penalty".split(" ");
const samplingOptions = [...integerOptions, ...numberOptions, "mirostat_tau", "mirostat_eta"];

export function commonOf(body: JsonObject): CommonRequest {
  const options = optionsOf(body);
  const numCtx = contextOf(options["num_ctx"]);
  for (const field of ["truncate", "shift"]) booleanOf(body[field] ?? true, field);
  return {
    model: modelNameOf(body),
    stream: booleanOf(body["stream"] ?? true, "stream"),
    keepAlive: keepAliveOf(body["keep_alive"]),
    think: thinkOf(body["think"]),
    topLogprobs: topLogprobsOf(body),
    ...(numCtx !== undefined && { numCtx }),
  };
}

export function settingsOf(body: JsonObject): EngineSettings {
  const options = optionsOf(body);
  const sampling = samplingOf(options);
  // 0, like anything negative, is no limit to Ollama; llama-server would answer nothing.
  const limit = Math.trunc(numberOf(options["num_predict"] ?? -1, "options.num_predict"));
  const top = topLogprobsOf(body);
  const logprobs = booleanOf(body["logprobs"] ?? false, "logprobs");
  const schema = formatOf(body["format"]);
  return {
    chat: {
      ...responseFormatOf(schema),
      ...sampling,
      ...(limit > 0 && { max_tokens: limit }),
      ...thinkingOf(thinkOf(body["think"])),
      // Without a number the engine sends twenty alternatives to every token, with 0 nothing at all.
      ...(logprobs && { logprobs: true, top_logprobs: Math.max(1, top) }),
    },
    plain: {
      ...(schema && { json_schema: schema === "any" ? { type: "object" } : schema }),
      ...sampling,
      ...(limit > 0 && { n_predict: limit }),
      ...(logprobs && { n_probs: Math.max(1, top) }),
    },
  };
}

/** Nothing to answer: the model is to be loaded or, where it is to be kept for no time at all, unloaded. */
export function idlePurposeOf({ keepAlive }: CommonRequest): "load" | "unload" {
  return isNoTime(keepAlive) ? "unload" : "load";
}

/** `keep_alive: 0`. Nothing else of the body is read, or need be right. */
export function keepsForNoTime(body: unknown): boolean {
  return isJsonObject(body) && isNoTime(parseKeepAlive(body["keep_alive"]));
}

function isNoTime(keepAlive: KeepAlive | null): boolean {
  return keepAlive?.kind === "seconds" && keepAlive.seconds === 0;
}

export function keepAliveOf(value: unknown): KeepAlive {
  return parseKeepAlive(value) ?? refuse("keep_alive", 'must be seconds, or a duration such as "5m"');
}

/** The context size in `options`, where there is one. */
export function contextOf(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value === "number" && Number.isSafeInteger(value) && value > 0) return value;
  return refuse("options.num_ctx", "must be a positive integer");
}

export function optionsOf(body: JsonObject): JsonObject {
  const options = body["options"] ?? {};
  return isJsonObject(options) ? options : refuse("options", "must be an object");
}

function samplingOf(options: JsonObject): JsonObject {
  const sampling: Record<string, unknown> = {};
  for (const name of samplingOptions) {
    if (options[name] === undefined || options[name] === null) continue;
    const value = numberOf(options[name], `options.${name}`);
    sampling[name] = integerOptions.includes(name) ? Math.trunc(value) : value;
  }
  const stop = options["stop"] ?? [];
  const stops = typeof stop === "string" ? [stop] : listOf(stop, "options.stop");
  if (stops.length > 0) sampling["stop"] = stops.map((text, at) => stringOf(text, `options.stop[${at}]`));
  return sampling;
}

function formatOf(format: unknown): JsonObject | "any" | null {
  if (format === undefined || format === null || format === "") return null;
  if (format === "json") return "any";
  return isJsonObject(format) ? format : refuse("format", 'must be "json" or a JSON schema');
}

function responseFormatOf(schema: JsonObject | "any" | null): JsonObject {
  if (schema === null) return {};
  if (schema === "any") return { response_format: { type: "json_object" } };
  return { response_format: { type: "json_schema", json_schema: { name: "answer", strict: true, schema } } };
}

const thinkLevels: ReadonlySet<unknown> = new Set<Think>([true, false, "low", "medium", "high", "max"]);

function isThink(value: unknown): value is Think {
  return thinkLevels.has(value);
}

function thinkOf(value: unknown): Think | undefined {
  const think = value ?? undefined;
  if (think === undefined || isThink(think)) return think;
  return refuse("think", 'must be true, false, "low", "medium", "high" or "max"');
}

/** Where nothing is asked for, the engine has the template think if it can, as Ollama does. */
function thinkingOf(think: Think | undefined): JsonObject {
  if (think === undefined) return {};
  if (typeof think === "boolean") return { chat_template_kwargs: { enable_thinking: think } };
  const effort = think === "max" ? "high" : think;
  // Older builds of llama-server read the effort from the template's arguments only, newer ones from the field too.
  return { chat_template_kwargs: { enable_thinking: true, reasoning_effort: effort }, reasoning_effort: effort };
}

function topLogprobsOf(body: JsonObject): number {
  const top = numberOf(body["top_logprobs"] ?? 0, "top_logprobs");
  if (!Number.isInteger(top) || top < 0 || top > 20) return refuse("top_logprobs", "must be an integer from 0 to 20");
  return top;
}
