// Views of the requests in the state, for status and for other queues.

import type { WaitReason } from "./events.ts";
import { isBelieved } from "./model.ts";
import { isDrained, type State } from "./state.ts";
import type { Loaded } from "./world.ts";

export interface Waiting {
  readonly model: string;
  readonly requests: number;
  /** Of the request that has waited longest. */
  readonly oldestMs: number;
  readonly for: WaitReason;
}

/** By model and reason, those that have waited longest first. */
export function waiting(state: State, now: number): readonly Waiting[] {
  const groups: Waiting[] = [];
  for (const { id, queue, elsewhere, reason } of state.models.values()) {
    const reasons = [...queue.map((ticket) => [ticket, reason] as const), ...elsewhere];
    for (const each of new Set(reasons.map(([, why]) => why))) {
      const since = reasons.filter(([, why]) => why === each).map(([ticket]) => ticket.since);
      groups.push({ model: id, requests: since.length, oldestMs: now - Math.min(...since), for: each });
    }
  }
  return groups.toSorted((a, b) => b.oldestMs - a.oldestMs);
}

/** Answers in flight, by model. */
export function inFlight(state: State): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { id, inFlight: count } of state.models.values()) if (count > 0) counts.set(id, count);
  return counts;
}

/** ms that the first token of each process took, by model; null: it has not come yet. */
export function firstTokens(state: State): ReadonlyMap<string, number | null> {
  const models = [...state.models.values()];
  return new Map(
    models.flatMap((each) => (each.firstToken ? [[each.id, isBelieved(each) ? each.firstToken.ms : null]] : [])),
  );
}

/** Whether requests wait for this process, in it or before it, or for any model slot. */
export function keepsWaiting(state: State, id: string, { slots }: Pick<Loaded, "slots">): boolean {
  const own = state.models.get(id);
  if (own && (own.inFlight > slots || own.queue.length + own.elsewhere.size > 0)) return true;
  return [...state.models.values()].some(({ queue, reason }) => queue.length > 0 && reason === "room");
}

/** A loaded model that nothing is done to. */
export function isOpen(state: State, id: string): boolean {
  return !isDrained(state, id) && !state.models.get(id)?.unload;
}

/** When an idle model is unloaded, ms; null: not by itself. */
export function expiresAt(state: State, id: string, now: number): number | null {
  const idle = state.models.get(id)?.idle;
  if (!idle || !Number.isFinite(idle.keepMs) || state.world.isPinned(id)) return null;
  return Math.round(Number.isFinite(idle.dueAt) ? idle.dueAt : now + idle.keepMs);
}
