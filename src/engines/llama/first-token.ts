// Asks a new process for one token. An instance was seen that was healthy and answered every request with 500 (llama.cpp#27309).
import type { TokenAnswer } from "../../core/token-answer.ts";
import { askServer, type EngineAnswer } from "./ask-server.ts";
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
  return askServer(instance, questions[instance.task]).then(judge, () => ({ kind: "none" }));
}

/** What it refuses as the fault of the question (4xx), or as not its task (501), is no sign that it cannot compute. */
function judge({ status, text: said }: EngineAnswer): TokenAnswer {
  if (status < 500 || status === 501) return { kind: "given" };
  return status === 503 ? { kind: "none" } : { kind: "refused", why: messageOf(said) };
}
