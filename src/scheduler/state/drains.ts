// Changes that have to wait for answers: a drain keeps new requests back, and waits for the answers in flight and for a load.

import type { Drain } from "./model.ts";
import { emit, isLoading, modelOf, type State, wake } from "./state.ts";

export function drainBegan(state: State, drain: number, models: readonly string[] | "all"): void {
  const busy = (models === "all" ? [...state.models.keys()] : models).filter((id) => isAnswering(state, id));
  state.drains.set(drain, { models, began: state.now, busy, isDone: false });
}

export function settleDrains(state: State): void {
  for (const [drain, entry] of state.drains) {
    if (entry.isDone) continue;
    const deadline = entry.began + state.limits.drainMs;
    if (isBusy(state, entry) && state.now < deadline) wake(state, deadline);
    else finish(state, drain, entry);
  }
}

function isBusy(state: State, { models }: Drain): boolean {
  if (models === "all") return state.load !== null || [...state.models.keys()].some((id) => isAnswering(state, id));
  return models.some((id) => isLoading(state, id) || isAnswering(state, id));
}

function isAnswering({ models }: State, id: string): boolean {
  return (models.get(id)?.inFlight ?? 0) > 0;
}

function finish(state: State, drain: number, entry: Drain): void {
  entry.isDone = true;
  const cut = new Map(entry.busy.map((id) => [id, modelOf(state, id).inFlight]));
  for (const [id, count] of cut) if (count > 0) emit(state, { kind: "cut", id });
  emit(state, { kind: "drained", drain, cut });
}
