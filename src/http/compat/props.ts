// A loaded model's own properties, asked of its process. Loads nothing, and does not count as a use.
import { GatewayError } from "../../core/errors.ts";
import type { CachedModel } from "../../plan/observed.ts";
import { askInstance } from "../ask-instance.ts";
import type { CompatRoutesDeps } from "./deps.ts";

/** The process's JSON as it is. Errors: `invalid_request` where the model is not loaded, `upstream_failed`. */
export async function readProps(
  { admission, upstream }: Pick<CompatRoutesDeps, "admission" | "upstream">,
  model: CachedModel,
  signal: AbortSignal,
): Promise<string> {
  const instance = admission.peek(model.upstreamId);
  // As the engine's router answers where it is told not to load.
  if (!instance) throw new GatewayError("invalid_request", "model is not loaded", { param: "model" });
  const { status, text } = await askInstance(upstream, instance, { path: "/props", body: null }, [signal]);
  if (status !== 200) throw new GatewayError("upstream_failed", `${model.id} answered /props with ${status}`);
  return text;
}
