// A loaded model's own properties, asked of its process. Loads nothing, and does not count as a use.
import { GatewayError } from "../../core/errors.ts";
import type { CachedModel } from "../../plan/observed.ts";
import type { CompatRoutesDeps } from "./deps.ts";

/** The process's JSON as it is. Errors: `invalid_request` where the model is not loaded, `upstream_failed`. */
export function readProps(
  { admission, upstream }: Pick<CompatRoutesDeps, "admission" | "upstream">,
  model: CachedModel,
  signal: AbortSignal,
): Promise<string> {
  const instance = admission.peek(model.upstreamId);
  // As the engine's router answers where it is told not to load.
  if (!instance) throw new GatewayError("invalid_request", "model is not loaded", { param: "model" });
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let status = 0;
    const exchange = upstream.send(
      instance,
      { path: "/props", body: null, stream: false },
      {
        start: (code) => {
          status = code;
        },
        data: (chunk) => {
          chunks.push(chunk);
          return true;
        },
        end: () => {
          if (status === 200) resolve(Buffer.concat(chunks).toString());
          else reject(new GatewayError("upstream_failed", `${model.id} answered /props with ${status}`));
        },
        fail: reject,
      },
    );
    if (signal.aborted) exchange.abort();
    else signal.addEventListener("abort", exchange.abort, { once: true });
  });
}
