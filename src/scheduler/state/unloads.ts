// Models on their way out: for another model's slot, for lack of use, or on request. New requests wait until the model is gone.
import type { GatewayError } from "../../core/errors.ts";
import type { Model, Unload } from "./model.ts";
import { emit, modelOf, type State, wake } from "./state.ts";

/** An idle model that is still loaded is unloaded again after this. */
const againMs = 1_000;

/** One unload per model at a time: a second request has the outcome of the first. */
export function beginUnload(state: State, model: Model, cause: Unload["cause"]): void {
  if (model.unload) return;
  model.unload = { since: state.now, isSent: false, cause };
  emit(state, { kind: "unload", id: model.id });
}

export function unloadOnRequest(state: State, id: string): void {
  if (state.load?.id === id) state.load.isUnwanted = true;
  beginUnload(state, modelOf(state, id), "request");
}

/** Ends those whose model is gone, whose router is, or that took too long. */
export function settleUnloads(state: State): void {
  for (const model of state.models.values()) {
    if (!model.unload?.isSent) continue;
    const deadline = model.unload.since + state.limits.loadTimeoutMs;
    const isGone = (state.world.listed.get(model.id) ?? "unloaded") === "unloaded";
    if (isGone || !state.world.isReady || state.now >= deadline) endUnload(state, model, null);
    else wake(state, deadline);
  }
}

export function endUnload(state: State, model: Model, error: GatewayError | null): void {
  const isIdle = model.unload?.cause === "idle";
  model.unload = null;
  emit(state, { kind: "unloaded", id: model.id, error });
  if (!isIdle || !model.idle) return;
  model.idle.dueAt = state.now + againMs;
  const fields = { model: model.id, error: String(error) };
  if (error) emit(state, { kind: "warn", message: "an idle model could not be unloaded", fields });
}
