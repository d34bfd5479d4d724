// Translates the body of Ollama's POST /api/chat into a chat completion request for llama-server.
// Pure; which model it is, whether it is loaded and how the answer goes back is the business of others.
import { isJsonObject } from "../../../core/merge-patch.ts";

import { messagesOf, type UpstreamMessage, type UpstreamPart } from "./chat-messages.ts";
import { listOf, objectOf, refuse } from "./fields.ts";
import { type CommonRequest, commonOf, idlePurposeOf, type Need, settingsOf } from "./options.ts";

/** It always streams: llama.cpp's router goes on with an answer that is not streamed when the client has left. */
export interface UpstreamChat {
  readonly model: string;
  readonly messages: readonly UpstreamMessage[];
  readonly stream: true;
  readonly stream_options: { readonly include_usage: true };
  /** Tools, format, sampling and thinking, where given. */
  readonly [key: string]: unknown;
}

export interface NativeChat extends CommonRequest {
  /** With no messages there is nothing to answer: the model is to be loaded, or (`keep_alive: 0`) unloaded. */
  readonly purpose: "chat" | "load" | "unload";
  readonly needs: readonly Need[];
  readonly upstream: UpstreamChat;
}

/** Of a parsed JSON value. Errors: `invalid_request`, naming the field. */
export function parseChatRequest(value: unknown): NativeChat {
  const body = objectOf(value);
  const common = commonOf(body);
  const messages = messagesOf(listOf(body["messages"] ?? [], "messages"));
  const tools = listOf(body["tools"] ?? [], "tools");
  const badTool = tools.findIndex((tool) => !isJsonObject(tool));
  if (badTool >= 0) return refuse(`tools[${badTool}]`, "must be an object");
  const needs: Need[] = [];
  if (tools.length > 0) needs.push("tools");
  if (messages.some(({ content }) => typeof content !== "string" && content.some(isImage))) needs.push("vision");
  if (common.think !== undefined && common.think !== false) needs.push("thinking");
  return {
    ...common,
    purpose: messages.length > 0 ? "chat" : idlePurposeOf(common),
    needs,
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

function isImage(part: UpstreamPart): boolean {
  return part.type === "image_url";
}
