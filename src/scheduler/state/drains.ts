// Changes that have to wait for answers: a drain keeps new requests back, and waits for the answers in flight and for a load.
import { type Drain, emit, isLoading, modelOf, type State, wake } from "./state.ts";

export function drainBegan(state: State, drain: number, models: readonly string[] | "all"): void {
  const isBusy = (id: string): boolean => modelOf(state, id).inFlight > 0;
  const busy = (models === "all" ? [...state.models.keys()] : models).filter(isBusy);
  state.drains.set(drain, { models, began: state.now, busy, isDone: false });
  hold(state, models, 1);
}

function hold(state: State, models: readonly string[] | "all", by: 1 | -1): void {
  if (models === "all") state.holds += by;
  else for (const id of models) modelOf(state, id).holds += by;
}

/** The change is made, or given up. */
export function drainOver(state: State, drain: number): void {
  const entry = state.drains.get(drain);
  if (!entry) return;
  state.drains.delete(drain);
  hold(state, entry.models, -1);
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
  if (models !== "all") return models.some((id) => isLoading(state, id) || modelOf(state, id).inFlight > 0);
  return state.load !== null || [...state.models.values()].some(({ inFlight }) => inFlight > 0);
}

function finish(state: State, drain: number, entry: Drain): void {
  entry.isDone = true;
  const cut = new Map(entry.busy.map((id) => [id, modelOf(state, id).inFlight]));
  for (const [id, count] of cut) if (count > 0) emit(state, { kind: "cut", id });
  emit(state, { kind: "drained", drain, cut });
}
