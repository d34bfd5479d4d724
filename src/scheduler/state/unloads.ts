// Models on their way out: for another model's slot, for lack of use, or on request. New requests wait until the model is gone.
// How long an idle model stays loaded is its last request's to set; the time is the process's, and goes with it.
import type { GatewayError } from "../../core/errors.ts";
import { emit, isHeld, isLoading, type Model, modelOf, type State, type Unload, wake } from "./state.ts";

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

export function useBegins(model: Model, now: number): void {
  model.inFlight++;
  model.lastUsed = now;
  if (model.idle) model.idle.dueAt = Number.POSITIVE_INFINITY;
}

export function useEnds(state: State, id: string): void {
  const model = modelOf(state, id);
  model.inFlight--;
  model.lastUsed = state.now;
  if (model.inFlight === 0) restart(state, model);
}

export function keep(state: State, id: string, keepMs: number): void {
  const model = modelOf(state, id);
  if (!model.idle) return;
  model.idle.keepMs = keepMs;
  if (model.inFlight === 0) restart(state, model);
}

function restart(state: State, { idle }: Model): void {
  if (!idle) return;
  idle.dueAt = state.now + idle.keepMs;
  wake(state, idle.dueAt);
}

/** A process that is gone takes its time along, and a new one has one from the start: its client may have left. */
export function followProcesses(state: State): void {
  const { loaded } = state.world;
  for (const model of state.models.values()) if (!loaded.has(model.id)) model.turn = model.idle = null;
  for (const [id, { origin }] of loaded) {
    const model = modelOf(state, id);
    if (model.idle?.origin === origin) continue;
    model.idle = { origin, keepMs: state.limits.keepAliveMs, dueAt: Number.POSITIVE_INFINITY };
    if (model.inFlight === 0) restart(state, model);
  }
}

export function unloadIdle(state: State): void {
  for (const model of state.models.values()) {
    const { id, idle, inFlight } = model;
    if (!idle || inFlight > 0 || state.world.isPinned(id)) continue;
    if (idle.dueAt > state.now) wake(state, idle.dueAt);
    // What stands against it ends with an event.
    else if (!isHeld(state, model) && !isLoading(state, id) && state.world.isReady) beginUnload(state, model, "idle");
  }
}
