// One question to a model's process and its whole answer, for what is no stream.
import type { EngineAnswer } from "./ask-server.ts";
import type { Instance } from "./instances.ts";
import type { Upstream, UpstreamRequest } from "./upstream.ts";

/** `body: null` asks with GET. Errors: those of the upstream. */
export function askInstance(
  upstream: Upstream,
  instance: Instance,
  request: Omit<UpstreamRequest, "stream">,
  signal: AbortSignal,
): Promise<EngineAnswer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let status = 0;
    const exchange = upstream.send(
      instance,
      { ...request, stream: false },
      {
        start: (code) => {
          status = code;
        },
        data: (chunk) => chunks.push(Buffer.from(chunk)) > 0,
        end: () => resolve({ status, text: Buffer.concat(chunks).toString("utf8") }),
        fail: reject,
      },
    );
    if (signal.aborted) exchange.abort();
    else signal.addEventListener("abort", () => exchange.abort(), { once: true });
  });
}
