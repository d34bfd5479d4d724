// The scheduler's state: one value that only `decide` changes. Every rule below it is a function of this value.
import type { Effect } from "./events.ts";
import { type Drain, type Load, Model } from "./model.ts";
import { type Limits, unknownWorld, type World } from "./world.ts";

export class State {
  readonly limits: Limits;
  /** ms; of the event that is being decided. */
  now = 0;
  /** Effects of that event. */
  effects: Effect[] = [];
  /** ms; the latest time for the next event. */
  wakeAt = Number.POSITIVE_INFINITY;
  world: World = unknownWorld;
  readonly models = new Map<string, Model>();
  load: Load | null = null;
  /** Requests wait for a model slot. */
  isCrowded = false;
  /** The model that takes no new requests, as another one waits for its slot. */
  yielding: string | null = null;
  /** Models that wait for a slot, and since when, ms. */
  readonly slotOrder = new Map<string, number>();
  /** The model for which another one was unloaded: it gets that slot. */
  slotFor: string | null = null;
  /** Calls in a row that the router broke off. */
  brokenOff = 0;
  /** ms; no load before this. */
  retryAt = 0;
  /** ms; since when the world is behind. */
  behindSince = 0;
  /** ms; when the router's list is read again although no event came. */
  resyncAt = Number.POSITIVE_INFINITY;
  /** In force, until the change is made or given up. */
  readonly drains = new Map<number, Drain>();
  isShutDown = false;

  constructor(limits: Limits) {
    this.limits = limits;
  }
}

export function modelOf(state: State, id: string): Model {
  let model = state.models.get(id);
  if (!model) state.models.set(id, (model = new Model(id)));
  return model;
}

/** Drops models of which nothing has to be remembered. */
export function forget(state: State): void {
  for (const [id, model] of state.models) {
    const isAsked = model.queue.length + model.elsewhere.size + model.inFlight > 0;
    const isThere = state.world.loaded.has(id) || state.load?.id === id || model.unload !== null;
    if (!isAsked && !isThere && model.failing === null) state.models.delete(id);
  }
}

/** Requests for the model wait while something is done to it. */
export function isHeld(state: State, model: Model): boolean {
  return model.unload !== null || isDrained(state, model.id);
}

export function isDrained({ drains }: State, id: string): boolean {
  for (const { models } of drains.values()) if (models === "all" || models.includes(id)) return true;
  return false;
}

/** A drain waits for the load in progress; a load that only waits for a slot is none. */
export function isLoading(state: State, id: string): boolean {
  return state.load?.id === id;
}

export function emit(state: State, effect: Effect): void {
  state.effects.push(effect);
}

/** Asks for an event at this time. */
export function wake(state: State, at: number): void {
  if (at < state.wakeAt) state.wakeAt = at;
}
