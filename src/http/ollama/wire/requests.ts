// Translates the bodies of Ollama's POST /api/chat and /api/generate into requests for llama-server. A generate is a chat of one
// message, a text to be continued as it stands (`raw`), or a gap to be filled in (`suffix`). Pure.
import { type NativeChat, type NativeGenerate, samplingOptions } from "../../../../schemas/ollama.ts";
import { GatewayError } from "../../../core/errors.ts";
import { type KeepAlive, parseKeepAlive } from "../../../core/keep-alive.ts";
import { imageOf, messagesOf, type UpstreamMessage, type UpstreamPart } from "./chat-messages.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/** What the model has to be able to do for a request. */
export type Need = "completion" | "tools" | "insert" | "vision" | "thinking";

/** Chat completions answer in OpenAI's chunks, the other two in the engine's own. */
export interface ParsedRequest {
  /** As the client wrote it. */
  readonly model: string;
  /** With no messages or prompt there is nothing to answer: the model is to be loaded, or (`keep_alive: 0`) unloaded. */
  readonly purpose: "chat" | "generate" | "load" | "unload";
  readonly needs: readonly Need[];
  /** The answer comes in pieces. */
  readonly stream: boolean;
  readonly keepAlive: KeepAlive;
  readonly numCtx: number | undefined;
  /** Alternatives to each token that the client requests. */
  readonly topLogprobs: number;
  /** Of the engine. */
  readonly path: "/v1/chat/completions" | "/completion" | "/infill";
  /** It always streams: llama.cpp's router goes on with an answer that is not streamed when the client has left. */
  readonly upstream: JsonObject;
}

/** Errors: `invalid_request`, for what the schema leaves open. */
export function parseChatRequest(body: NativeChat): ParsedRequest {
  const messages = messagesOf(body.messages ?? []);
  const tools = body.tools ?? [];
  const hasImage = messages.some(({ content }) => typeof content !== "string" && content.some(isImage));
  return chatRequest(body, messages.length > 0 ? "chat" : null, messages, {
    needs: [...(tools.length > 0 ? (["tools"] as const) : []), ...(hasImage ? (["vision"] as const) : [])],
    more: tools.length > 0 ? { tools } : {},
  });
}

/** Errors: `invalid_request`, for what the schema leaves open. */
export function parseGenerateRequest(body: NativeGenerate): ParsedRequest {
  const { prompt, suffix, system, template, raw, context } = body;
  const images = (body.images ?? []).map((image, at) => imageOf(image, `images[${at}]`));
  if (raw && (template || system || context?.length))
    throw refusal("raw mode does not support template, system, or context");
  if (raw && images.length > 0) throw refusal("raw mode does not support images");
  if (template)
    throw refusal("template is not supported: the engine has the model's own; send the finished prompt with raw: true");
  const purpose = prompt ? "generate" : null;
  const text = prompt ?? "";
  if (raw) return plainRequest(body, purpose, "/completion", { prompt: text });
  if (suffix) return plainRequest(body, purpose, "/infill", { input_prefix: text, input_suffix: suffix });
  const messages: UpstreamMessage[] = [
    ...(system ? [{ role: "system", content: system }] : []),
    { role: "user", content: images.length === 0 ? text : [...images, { type: "text", text }] },
  ];
  return chatRequest(body, purpose, messages, { needs: images.length > 0 ? ["vision"] : [], more: {} });
}

/** `keep_alive: 0` */
export function keepsForNoTime({ keep_alive }: { readonly keep_alive?: unknown }): boolean {
  const keepAlive = parseKeepAlive(keep_alive);
  return keepAlive?.kind === "seconds" && keepAlive.seconds === 0;
}

/** Errors: `invalid_request`. */
export function keepAliveOf(value: unknown): KeepAlive {
  const keepAlive = parseKeepAlive(value);
  if (!keepAlive) throw refusal('keep_alive must be seconds, or a duration such as "5m"');
  return keepAlive;
}

export function refusal(message: string): GatewayError {
  return new GatewayError("invalid_request", message);
}

type Generating = NativeChat | NativeGenerate;

function isImage(part: UpstreamPart): boolean {
  return part.type === "image_url";
}

/** `purpose: null`: there is nothing to answer. */
function commonOf(body: Generating, purpose: "chat" | "generate" | null) {
  const { model, stream, keep_alive, top_logprobs, options } = body;
  return {
    model,
    purpose: purpose ?? (keepsForNoTime(body) ? "unload" : "load"),
    stream: stream ?? true,
    keepAlive: keepAliveOf(keep_alive),
    numCtx: options?.num_ctx ?? undefined,
    topLogprobs: top_logprobs ?? 0,
  } as const;
}

function chatRequest(
  body: Generating,
  purpose: "chat" | "generate" | null,
  messages: readonly UpstreamMessage[],
  { needs, more }: { readonly needs: readonly Need[]; readonly more: JsonObject },
): ParsedRequest {
  const alternatives = alternativesOf(body);
  const limit = limitOf(body);
  return {
    ...commonOf(body, purpose),
    needs: body.think ? [...needs, "thinking"] : needs,
    path: "/v1/chat/completions",
    upstream: {
      model: body.model,
      messages,
      stream: true,
      stream_options: { include_usage: true },
      ...more,
      ...responseFormatOf(body.format),
      ...samplingOf(body),
      ...(limit !== null && { max_tokens: limit }),
      ...thinkingOf(body.think),
      ...(alternatives !== null && { logprobs: true, top_logprobs: alternatives }),
    },
  };
}

/** A request to one of the engine's own routes, which take the same settings under other names. */
function plainRequest(
  body: NativeGenerate,
  purpose: "generate" | null,
  path: "/completion" | "/infill",
  texts: JsonObject,
): ParsedRequest {
  const alternatives = alternativesOf(body);
  const limit = limitOf(body);
  const schema = schemaOf(body.format);
  return {
    ...commonOf(body, purpose),
    needs: path === "/infill" ? ["insert"] : [],
    path,
    upstream: {
      model: body.model,
      stream: true,
      ...texts,
      ...(schema && { json_schema: schema === "any" ? { type: "object" } : schema }),
      ...samplingOf(body),
      ...(limit !== null && { n_predict: limit }),
      ...(alternatives !== null && { n_probs: alternatives }),
    },
  };
}

/** 0, like anything negative, is no limit to Ollama; llama-server would answer nothing. */
function limitOf({ options }: Generating): number | null {
  const limit = Math.trunc(options?.num_predict ?? -1);
  return limit > 0 ? limit : null;
}

/** Without a number the engine sends twenty alternatives to every token, with 0 nothing at all. */
function alternativesOf({ logprobs, top_logprobs }: Generating): number | null {
  return logprobs ? Math.max(1, top_logprobs ?? 0) : null;
}

const integerOptions: ReadonlySet<string> = new Set(["top_k", "repeat_last_n", "seed", "mirostat"]);

function samplingOf({ options }: Generating): JsonObject {
  const sampling: Record<string, unknown> = {};
  for (const name of samplingOptions) {
    const value = options?.[name] ?? null;
    if (value !== null) sampling[name] = integerOptions.has(name) ? Math.trunc(value) : value;
  }
  const stops = [options?.stop ?? []].flat();
  return stops.length > 0 ? { ...sampling, stop: stops } : sampling;
}

function schemaOf(format: Generating["format"]): JsonObject | "any" | null {
  if (typeof format === "object") return format;
  if (format === "json") return "any";
  if (format) throw refusal('format must be "json" or a JSON schema');
  return null;
}

function responseFormatOf(format: Generating["format"]): JsonObject {
  const schema = schemaOf(format);
  if (schema === null) return {};
  if (schema === "any") return { response_format: { type: "json_object" } };
  return { response_format: { type: "json_schema", json_schema: { name: "answer", strict: true, schema } } };
}

/** Where nothing is asked for, the engine has the template think if it can, as Ollama does. */
function thinkingOf(think: Generating["think"]): JsonObject {
  if (think === undefined || think === null) return {};
  if (typeof think === "boolean") return { chat_template_kwargs: { enable_thinking: think } };
  const effort = think === "max" ? "high" : think;
  // Older builds of llama-server read the effort from the template's arguments only, newer ones from the field too.
  return { chat_template_kwargs: { enable_thinking: true, reasoning_effort: effort }, reasoning_effort: effort };
}
