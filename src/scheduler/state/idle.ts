// How long a model stays loaded that is not used: as its last request set it. The time is the process's, and goes with it.
import { isHeld, isLoading, type Model, modelOf, type State, wake } from "./state.ts";
import { beginUnload } from "./unloads.ts";

/** A change holds the model, or the router has not done as asked. */
const againMs = 1_000;
/** The document may unpin a model. */
const pinnedAgainMs = 60_000;

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
    const { idle } = model;
    if (!idle || model.unload || model.inFlight > 0) continue;
    if (idle.dueAt <= state.now) {
      if (state.world.isPinned(model.id)) idle.dueAt = state.now + pinnedAgainMs;
      else if (isHeld(state, model) || isLoading(state, model.id) || !state.world.isReady)
        idle.dueAt = state.now + againMs;
      else {
        beginUnload(state, model, "idle");
        continue;
      }
    }
    wake(state, idle.dueAt);
  }
}
