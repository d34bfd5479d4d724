// Translates the bodies of Ollama's POST /api/chat and /api/generate into requests for llama-server. A generate is a chat of one
// message, a text to be continued as it stands (`raw`), or a gap to be filled in (`suffix`). Pure.
import { isJsonObject } from "../../../core/json.ts";
import { imageOf, messagesOf, type UpstreamMessage, type UpstreamPart } from "./chat-messages.ts";
import { booleanOf, type JsonObject, listOf, objectOf, refuse, stringOf } from "./fields.ts";
import { type CommonRequest, commonOf, idlePurposeOf, type Need, settingsOf } from "./options.ts";

/** Chat completions answer in OpenAI's chunks, the other two in the engine's own. */
export interface ParsedRequest extends CommonRequest {
  /** With no messages or prompt there is nothing to answer: the model is to be loaded, or (`keep_alive: 0`) unloaded. */
  readonly purpose: "chat" | "generate" | "load" | "unload";
  readonly needs: readonly Need[];
  /** Of the engine. */
  readonly path: "/v1/chat/completions" | "/completion" | "/infill";
  /** It always streams: llama.cpp's router goes on with an answer that is not streamed when the client has left. */
  readonly upstream: JsonObject;
}

/** Of a parsed JSON value. Errors: `invalid_request`, naming the field. */
export function parseChatRequest(value: unknown): ParsedRequest {
  const body = objectOf(value);
  const common = commonOf(body);
  const messages = messagesOf(listOf(body["messages"] ?? [], "messages"));
  const tools = listOf(body["tools"] ?? [], "tools");
  const badTool = tools.findIndex((tool) => !isJsonObject(tool));
  if (badTool >= 0) return refuse(`tools[${badTool}]`, "must be an object");
  const needs: Need[] = [];
  if (tools.length > 0) needs.push("tools");
  if (messages.some(({ content }) => typeof content !== "string" && content.some(isImage))) needs.push("vision");
  if (thinks(common)) needs.push("thinking");
  return {
    ...common,
    purpose: messages.length > 0 ? "chat" : idlePurposeOf(common),
    needs,
    path: "/v1/chat/completions",
    upstream: {
      model: common.model,
      messages,
      stream: true,
      stream_options: { include_usage: true },
      ...(tools.length > 0 && { tools }),
      ...settingsOf(body).chat,
    },
  };
}

function thinks({ think }: CommonRequest): boolean {
  return think !== undefined && think !== false;
}

function isImage(part: UpstreamPart): boolean {
  return part.type === "image_url";
}

/** Of a parsed JSON value. Errors: `invalid_request`, naming the field. */
export function parseGenerateRequest(value: unknown): ParsedRequest {
  const body = objectOf(value);
  const common = commonOf(body);
  const [prompt, suffix, system, template] = ["prompt", "suffix", "system", "template"].map((field) =>
    stringOf(body[field] ?? "", field),
  ) as [string, string, string, string];
  const raw = booleanOf(body["raw"] ?? false, "raw");
  const context = listOf(body["context"] ?? [], "context");
  const images = listOf(body["images"] ?? [], "images").map((image, at) => imageOf(image, `images[${at}]`));
  if (raw && (template !== "" || system !== "" || context.length > 0))
    return refuse("raw", "mode does not support template, system, or context");
  if (raw && images.length > 0) return refuse("raw", "mode does not support images");
  if (template !== "")
    return refuse(
      "template",
      "is not supported: the engine has the model's own; send the finished prompt with raw: true",
    );
  const settings = settingsOf(body);
  const purpose = prompt === "" ? idlePurposeOf(common) : "generate";
  const request = { ...common, purpose } as const;
  const stream = { model: common.model, stream: true } as const;
  if (raw) {
    return { ...request, needs: [], path: "/completion", upstream: { ...stream, prompt, ...settings.plain } };
  }
  if (suffix !== "") {
    const gap = { input_prefix: prompt, input_suffix: suffix };
    return { ...request, needs: ["insert"], path: "/infill", upstream: { ...stream, ...gap, ...settings.plain } };
  }
  const needs: Need[] = [];
  if (images.length > 0) needs.push("vision");
  if (thinks(common)) needs.push("thinking");
  const messages: UpstreamMessage[] = [
    ...(system === "" ? [] : [{ role: "system", content: system }]),
    { role: "user", content: images.length === 0 ? prompt : [...images, { type: "text", text: prompt }] },
  ];
  return {
    ...request,
    needs,
    path: "/v1/chat/completions",
    upstream: { ...stream, messages, stream_options: { include_usage: true }, ...settings.chat },
  };
}
