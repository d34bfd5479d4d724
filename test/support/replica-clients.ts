// Clients of a balanced address: what each request came to, and which gateway it was sent to.
import { setTimeout as delay } from "node:timers/promises";

export interface Reply {
  /** By the balancer's header; null: no response. */
  readonly gateway: string | null;
  /** `told`: an error frame; `broken`: the connection ended before the response did; `refused`: another status than 200, or none. */
  readonly outcome: "whole" | "told" | "broken" | "refused";
  /** What a refused one was told. */
  readonly why: string;
}

/** `onBegun`: once, when text has come or none will. */
export async function chat(
  url: string,
  body: object,
  onBegun: (gateway: string | null) => void = () => undefined,
): Promise<Reply> {
  let gateway: string | null = null;
  let isBegun = false;
  const begin = (): void => {
    if (!isBegun) onBegun(gateway);
    isBegun = true;
  };
  let outcome: Reply["outcome"] = "refused";
  let why = "";
  try {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ messages: [{ role: "user", content: "hi" }], ...body }),
    });
    gateway = response.headers.get("x-gateway");
    if (response.status === 200) {
      outcome = "broken";
      outcome = await outcomeOf(response, "stream" in body, begin);
    } else why = `${response.status} ${await response.text()}`;
  } catch (error) {
    why = String(error instanceof Error ? (error.cause ?? error) : error);
  }
  begin();
  return { gateway, outcome, why };
}

async function outcomeOf(response: Response, isStream: boolean, begin: () => void): Promise<Reply["outcome"]> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of response.body ?? []) {
    text = (text + decoder.decode(chunk as Uint8Array, { stream: true })).slice(-4096);
    if (text.includes('"content"')) begin();
  }
  if (!isStream) return "whole";
  if (text.includes("data: [DONE]")) return "whole";
  return text.includes('"error"') ? "told" : "broken";
}

/** So many at a time, one request after the other, `pauseMs` later. `stop` waits for those under way, and answers with all. */
export function startClients(url: string, body: object, count: number, pauseMs = 0) {
  const replies: Reply[] = [];
  let isOver = false;
  const clients = Array.from({ length: count }, async () => {
    while (!isOver) {
      replies.push(await chat(url, body));
      await delay(pauseMs);
    }
  });
  return {
    stop: async (): Promise<readonly Reply[]> => {
      isOver = true;
      await Promise.all(clients);
      return replies;
    },
  };
}
