// Asks a new process for one token. An instance was seen that was healthy and answered every request with 500 (llama.cpp#27309).
import type { TokenAnswer } from "../../core/token-answer.ts";
import { createConnections } from "./connections.ts";
import type { Instance } from "./instances.ts";
import { messageOf } from "./router-client.ts";

const text = "a";

const questions = {
  completion: { path: "/completion", body: { prompt: text, n_predict: 1, temperature: 0, cache_prompt: false } },
  embedding: { path: "/v1/embeddings", body: { input: text } },
  rerank: { path: "/v1/rerank", body: { query: text, documents: [text] } },
} as const;

/** It ends with the process at the latest, and has no time limit: the first token of a large model may take minutes. */
export function askFirstToken(instance: Instance): Promise<TokenAnswer> {
  const { path, body } = questions[instance.task];
  const request = { path, body: [Buffer.from(JSON.stringify(body))], isLast: true };
  return new Promise((resolve) => {
    const said: Buffer[] = [];
    let status = 0;
    createConnections().send(instance, request, {
      onHead: (code) => {
        status = code;
      },
      onBody: (bytes) => said.push(Buffer.from(bytes)) > 0,
      onEnd: () => resolve(judge(status, Buffer.concat(said).toString())),
      onFailed: () => resolve({ kind: "none" }),
    });
  });
}

/** What it refuses as the fault of the question (4xx), or as not its task (501), is no sign that it cannot compute. */
function judge(status: number, said: string): TokenAnswer {
  if (status < 500 || status === 501) return { kind: "given" };
  return status === 503 ? { kind: "none" } : { kind: "refused", why: messageOf(said) };
}
