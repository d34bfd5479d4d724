// How long an idle model stays loaded: its last request sets it, else the document, else the limits. What a request has set is the
// process's, and goes with it.
import { isBelieved, type Model } from "./model.ts";
import { noTurn } from "./placement.ts";
import { isHeld, isLoading, modelOf, type State, wake } from "./state.ts";
import { beginUnload } from "./unloads.ts";

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
  model.idle.isAsked = true;
  if (model.inFlight === 0) restart(state, model);
}

function restart(state: State, { idle }: Model): void {
  if (!idle) return;
  idle.dueAt = state.now + idle.keepMs;
  wake(state, idle.dueAt);
}

/** A process that is gone takes its time along, and a new one has one from the start: its client may have left. So after an edit. */
export function followProcesses(state: State): void {
  const { loaded } = state.world;
  for (const model of state.models.values()) {
    if (loaded.has(model.id)) continue;
    model.turn = noTurn;
    model.idle = null;
  }
  for (const [id, { origin }] of loaded) {
    const model = modelOf(state, id);
    const keepMs = state.world.rules.get(id)?.keepAliveMs ?? state.limits.keepAliveMs;
    const { idle } = model;
    if (idle?.origin === origin && (idle.isAsked || idle.keepMs === keepMs)) continue;
    model.idle = { origin, keepMs, isAsked: false, dueAt: Number.POSITIVE_INFINITY };
    if (model.inFlight === 0) restart(state, model);
  }
}

export function unloadIdle(state: State): void {
  for (const model of state.models.values()) {
    const { id, idle, inFlight, queue } = model;
    if (!idle || inFlight + queue.length > 0 || !isBelieved(model) || state.world.isPinned(id)) continue;
    if (idle.dueAt > state.now) wake(state, idle.dueAt);
    // What stands against it ends with an event.
    else if (!isHeld(state, model) && !isLoading(state, id) && state.world.isReady) beginUnload(state, model, "idle");
  }
}
