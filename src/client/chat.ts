// A chat as a stream of its parts, by OpenAI's route.
import { connectionLost, errorFrom, GatewayClientError } from "./error.ts";
import { linesOf } from "./streams.ts";
import type { CallOptions, Transport } from "./transport.ts";

export interface ChatMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** Further members are sent as they are: `temperature`, `max_tokens`, … */
export interface ChatRequest {
  readonly model: string;
  readonly messages: readonly ChatMessage[];
  readonly [option: string]: unknown;
}

/** A piece of the answer, or of the reasoning before it. */
export interface ChatPart {
  readonly content: string;
  readonly reasoning: string;
}

interface Chunk {
  readonly error?: unknown;
  readonly choices?: readonly { readonly delta?: { readonly content?: string; readonly reasoning_content?: string } }[];
}

export async function* streamChat(
  transport: Transport,
  request: ChatRequest,
  { signal }: CallOptions,
): AsyncGenerator<ChatPart, void, undefined> {
  try {
    const json = { ...request, stream: true };
    const { body } = await transport.send("/v1/chat/completions", { method: "POST", json, signal });
    for await (const line of linesOf(body)) {
      const data = /^data: ?(.*)$/.exec(line)?.[1];
      if (data === "[DONE]") return;
      if (data === undefined) continue;
      const { error, choices } = JSON.parse(data) as Chunk;
      if (error !== undefined) throw errorFrom(200, data);
      const { content, reasoning_content: reasoning } = choices?.[0]?.delta ?? {};
      if (content || reasoning) yield { content: content ?? "", reasoning: reasoning ?? "" };
    }
  } catch (error) {
    throw connectionLost(error, signal);
  }
  throw new GatewayClientError(0, `the answer of ${request.model} broke off`, { code: "cut" });
}
