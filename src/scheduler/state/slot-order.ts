// Which model gets the next slot: by its priority, and by how long it has waited. Rule 2 of README.md.
import type { Model } from "./model.ts";
import { modelOf, type State } from "./state.ts";

/**
 * One priority more counts as much as having waited this part of the time after which a request is rejected. So the highest goes
 * before the lowest (20 more) for half of that time at most.
 */
const waitPart = 1 / 40;

export function waitForSlot({ slotOrder, now }: State, id: string): void {
  if (!slotOrder.has(id)) slotOrder.set(id, now);
}

/** Of those that may be loaded now. The model that another one has left for comes first: else that one could come back at once. */
export function nextInOrder(state: State, isWanted: (id: string) => boolean): Model | undefined {
  const wanted = [...state.slotOrder.keys()].filter(isWanted).toSorted((a, b) => rankOf(state, a) - rankOf(state, b));
  if (state.slotFor !== null && !wanted.includes(state.slotFor)) state.slotFor = null;
  const next = state.slotFor ?? wanted[0];
  return next === undefined ? undefined : modelOf(state, next);
}

/** ms; the lowest is next. It does not change while a model waits: waiting counts for all alike. */
function rankOf({ slotOrder, world, limits }: State, id: string): number {
  return (slotOrder.get(id) ?? 0) - (world.rules.get(id)?.priority ?? 0) * limits.loadTimeoutMs * waitPart;
}
