// Asks a new process for one token. An instance was seen that was healthy and answered every request with 500 (llama.cpp#27309).
import type { TokenAnswer } from "../../core/token-answer.ts";
import { Client } from "../../undici.ts";
import type { Instance } from "./instances.ts";
import { messageOf } from "./router-client.ts";

const text = "a";

const questions = {
  completion: { path: "/completion", body: { prompt: text, n_predict: 1, temperature: 0, cache_prompt: false } },
  embedding: { path: "/v1/embeddings", body: { input: text } },
  rerank: { path: "/v1/rerank", body: { query: text, documents: [text] } },
} as const;

/** It ends with the process at the latest, and has no time limit: the first token of a large model may take minutes. */
export async function askFirstToken({ origin, key, task }: Instance): Promise<TokenAnswer> {
  const { path, body } = questions[task];
  const client = new Client(origin, { headersTimeout: 0, bodyTimeout: 0 });
  try {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    const { statusCode, body: answer } = await client.request({
      method: "POST",
      path,
      headers,
      body: JSON.stringify(body),
      reset: true,
    });
    return judge(statusCode, await answer.text());
  } catch {
    return { kind: "none" };
  } finally {
    void client.destroy();
  }
}

/** What it refuses as the fault of the question (4xx), or as not its task (501), is no sign that it cannot compute. */
function judge(status: number, said: string): TokenAnswer {
  if (status < 500 || status === 501) return { kind: "given" };
  return status === 503 ? { kind: "none" } : { kind: "refused", why: messageOf(said) };
}
