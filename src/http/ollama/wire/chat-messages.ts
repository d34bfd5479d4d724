// Translates the messages of Ollama's chat, with their images and tool calls, into those of a chat completion. Pure.
import { isJsonObject } from "../../../core/json.ts";

import { listOf, refuse, stringOf } from "./fields.ts";

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

/** The first characters of the base64 text of the formats that vision models take. */
const imagePrefixes = [
  ["png", /^iVBORw0KGgo/],
  ["jpeg", /^\/9j\//],
  ["gif", /^R0lGODlh|^R0lGODdh/],
  ["webp", /^UklGR.{7}RUJQ/],
] as const;

/** An image in base64, or a data URL of one. */
export function imageOf(value: unknown, field: string): UpstreamPart {
  const text = stringOf(value, field);
  if (text.startsWith("data:image/")) return { type: "image_url", image_url: { url: text } };
  const format = imagePrefixes.find(([, prefix]) => prefix.test(text))?.[0];
  if (format === undefined) return refuse(field, "must be a PNG, JPEG, GIF or WebP image in base64");
  return { type: "image_url", image_url: { url: `data:image/${format};base64,${text}` } };
}

function argumentsOf(value: unknown, field: string): string {
  if (value === undefined || value === null) return "{}";
  return isJsonObject(value) ? JSON.stringify(value) : refuse(field, "must be an object");
}

/**
 * Ollama's tool calls need no ids, and its results name the tool; a chat completion matches them by id. So calls
 * without an id are numbered by their place in the conversation, which gives the same ids, and with them the same
 * prompt for the engine's cache, when the conversation is sent again.
 */
export function messagesOf(list: readonly unknown[]): readonly UpstreamMessage[] {
  const calls = list.flatMap((message) => (isJsonObject(message) ? (message["tool_calls"] ?? []) : []));
  const givenIds = new Set(calls.map((call) => (isJsonObject(call) ? call["id"] : undefined)));
  let numbered = 0;
  let unanswered: UpstreamToolCall[] = [];

  function callOf(value: unknown, field: string): UpstreamToolCall {
    const called = isJsonObject(value) ? value["function"] : undefined;
    if (!isJsonObject(value) || !isJsonObject(called)) return refuse(`${field}.function`, "must be an object");
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
    if (!isJsonObject(message)) return refuse(field, "must be an object");
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
