// Translates the messages of Ollama's chat, with their images and tool calls, into those of a chat completion. Pure.
import type { NativeMessage } from "../../../../schemas/ollama.ts";
import { GatewayError } from "../../../core/errors.ts";

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

/** An image in base64, or a data URL of one. Errors: `invalid_request`. */
export function imageOf(text: string, field: string): UpstreamPart {
  if (text.startsWith("data:image/")) return { type: "image_url", image_url: { url: text } };
  const format = imagePrefixes.find(([, prefix]) => prefix.test(text))?.[0];
  if (format === undefined)
    throw new GatewayError("invalid_request", `${field} must be a PNG, JPEG, GIF or WebP image in base64`);
  return { type: "image_url", image_url: { url: `data:image/${format};base64,${text}` } };
}

type NativeToolCall = NonNullable<NativeMessage["tool_calls"]>[number];

/**
 * Ollama's tool calls need no ids, and its results name the tool; a chat completion matches them by id. So calls
 * without an id are numbered by their place in the conversation, which gives the same ids, and with them the same
 * prompt for the engine's cache, when the conversation is sent again.
 */
export function messagesOf(list: readonly NativeMessage[]): readonly UpstreamMessage[] {
  const givenIds = new Set(list.flatMap(({ tool_calls }) => (tool_calls ?? []).map(({ id }) => id)));
  let numbered = 0;
  let unanswered: UpstreamToolCall[] = [];

  function newId(): string {
    while (givenIds.has(`call_${numbered}`)) numbered++;
    return `call_${numbered++}`;
  }

  function callOf({ id, function: called }: NativeToolCall): UpstreamToolCall {
    const text = JSON.stringify(called.arguments ?? {});
    return { id: id || newId(), type: "function", function: { name: called.name, arguments: text } };
  }

  function answeredBy(id: string, tool: string): string {
    const at = unanswered.findIndex((call) =>
      id === "" ? tool === "" || call.function.name === tool : call.id === id,
    );
    const call = at < 0 ? undefined : unanswered.splice(at, 1)[0];
    return id || (call?.id ?? "");
  }

  return list.map((message, index): UpstreamMessage => {
    const { role } = message;
    const content = contentOf(message, `messages[${index}]`);
    if (role === "tool") {
      const name = message.tool_name ?? message.name ?? "";
      const id = answeredBy(message.tool_call_id ?? "", name);
      return { role, content, ...(id !== "" && { tool_call_id: id }), ...(name !== "" && { name }) };
    }
    if (role !== "assistant") return { role, content };
    const calls = (message.tool_calls ?? []).map(callOf);
    if (calls.length > 0) unanswered = [...calls];
    return {
      role,
      content,
      ...(message.thinking && { reasoning_content: message.thinking }),
      ...(calls.length > 0 && { tool_calls: calls }),
    };
  });
}

function contentOf({ content, images }: NativeMessage, field: string): UpstreamMessage["content"] {
  const text = content ?? "";
  const shown = (images ?? []).map((image, at) => imageOf(image, `${field}.images[${at}]`));
  if (shown.length === 0) return text;
  return text === "" ? shown : [...shown, { type: "text", text }];
}
