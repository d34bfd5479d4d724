// One question to a model's process and its whole answer, for what is no stream.
import type { Instance } from "../../engines/llama/instances.ts";
import type { Upstream, UpstreamRequest } from "./upstream.ts";

export interface EngineAnswer {
  readonly status: number;
  readonly text: string;
}

/** `body: null` asks with GET. Each of the signals ends it. Errors: those of the upstream. */
export function askInstance(
  upstream: Upstream,
  instance: Instance,
  request: Omit<UpstreamRequest, "stream">,
  signals: readonly AbortSignal[],
): Promise<EngineAnswer> {
  const over = new AbortController();
  const answer = new Promise<EngineAnswer>((resolve, reject) => {
    const chunks: Buffer[] = [];
    let status = 0;
    const exchange = upstream.send(
      instance,
      { ...request, stream: false },
      {
        start: (code) => {
          status = code;
        },
        data: (chunk) => {
          chunks.push(chunk);
          return true;
        },
        end: () => resolve({ status, text: Buffer.concat(chunks).toString("utf8") }),
        fail: reject,
      },
    );
    for (const signal of signals) {
      if (signal.aborted) exchange.abort();
      else signal.addEventListener("abort", () => exchange.abort(), { once: true, signal: over.signal });
    }
  });
  return answer.finally(() => over.abort());
}
