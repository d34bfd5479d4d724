// The models in their slots, as placement judges them, and the one that is to have a slot beside them.
import { GatewayError } from "../../core/errors.ts";
import { placedValues } from "../../plan/observed.ts";
import type { Model } from "./model.ts";
import { evictedFor, fitsBeside, noTurn, onceGone, type Placed, type Wanted } from "./placement.ts";
import { isHeld, type State } from "./state.ts";
import type { ByDevice } from "./world.ts";

/** How long a load waits for an edit to reach the router, which takes tens of ms. */
const mostBehindMs = 1_000;
const noBytes: ByDevice = new Map();

/** ms; until then an edit may still change what a load would be. */
export function behindUntil({ world, behindSince }: State): number {
  return world.isBehind ? behindSince + mostBehindMs : 0;
}

export function wantedFor(state: State, { id, isShort }: Model): Wanted {
  const { modelsMax, memory } = state.world;
  return { slots: modelsMax, takes: memory.need(id) ?? noBytes, limits: memory.limits(), isShort };
}

export function placedBeside(state: State, id: string): Placed[] {
  return placedModels(state).filter((placed) => placed.id !== id);
}

function placedModels(state: State): Placed[] {
  return [...state.world.listed].flatMap(([id, value]) => (placedValues.has(value) ? placedModel(state, id) : []));
}

/** The model slots as they are now, and what a load would change. */
export interface SlotsView {
  /** What a model in a slot takes; null: it is in none. */
  takes(id: string): ByDevice | null;
  /** Models that a load of one that takes so much would unload; null: it never fits beside the pinned models. */
  evicts(id: string, takes: ByDevice): readonly string[] | null;
}

export function slotsView(state: State): SlotsView {
  const placed = placedModels(state);
  const { modelsMax, memory } = state.world;
  const limits = memory.limits();
  return {
    takes: (id) => placed.find((model) => model.id === id)?.takes ?? null,
    evicts: (id, takes) =>
      evictedFor(
        placed.filter((model) => model.id !== id),
        { slots: modelsMax, takes, limits, isShort: false },
      ),
  };
}

function placedModel(state: State, id: string): Placed {
  const model = state.models.get(id);
  return {
    id,
    isLeaving: (model?.unload ?? null) !== null,
    pinned: state.world.isPinned(id),
    inFlight: model?.inFlight ?? 0,
    waiting: model && !isHeld(state, model) ? model.queue.length : 0,
    lastUsed: model?.lastUsed ?? 0,
    turn: model?.turn ?? noTurn,
    takes: state.world.memory.taken(id),
  };
}

/** What the pinned models take beside which a model never fits, as it does not alone if there are none; null: it may fit. */
export function pinnedForTooLarge(state: State, model: Model): readonly ByDevice[] | null {
  if (behindUntil(state) > state.now || !state.world.memory.need(model.id)) return null;
  const beside = placedBeside(state, model.id);
  const pinned = beside.filter(({ isLeaving, pinned: stays }) => stays && !isLeaving);
  const wanted = onceGone(wantedFor(state, model), beside);
  const fits = fitsBeside({ ...wanted, slots: Number.POSITIVE_INFINITY }, pinned);
  // What leftovers hold is free in a moment.
  return fits || state.world.memory.hasLeftovers() ? null : pinned.map(({ takes }) => takes);
}

/** `too_large` */
export function tooLargeError(state: State, model: Model): GatewayError | null {
  const pinned = pinnedForTooLarge(state, model);
  return pinned && new GatewayError("too_large", `${model.id} ${state.world.memory.refusal(model.id, pinned)}`);
}
