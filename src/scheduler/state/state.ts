// The scheduler's state: one value that only `decide` changes. Every rule below it is a function of this value.

import type { Turn } from "./placement.ts";
import type { Effect, FailingLoad, Limits, Ticket, WaitReason, World } from "./types.ts";

/** Everything that is known of one model; dropped when nothing is. */
export class Model {
  readonly id: string;
  /** By ticket number. */
  readonly queue: Ticket[] = [];
  /** Requests that wait for something else first. */
  readonly elsewhere = new Map<Ticket, WaitReason>();
  inFlight = 0;
  unload: Unload | null = null;
  /** What the queue waits for. */
  reason: WaitReason = "load";
  reasonSince = 0;
  unlistedSince: number | null = null;
  /** Since when its load waits for RPC workers. */
  workersSince: number | null = null;
  lastUsed = 0;
  turn: Turn | null = null;
  idle: Idle | null = null;
  failing: FailingLoad | null = null;
  /** Its last load ended early and is made again. */
  hasEndedOnce = false;

  constructor(id: string) {
    this.id = id;
  }
}

export interface Unload {
  readonly since: number;
  /** The router has taken the call. */
  isSent: boolean;
  readonly cause: "idle" | "request" | { readonly slotFor: string };
}

/** How long a process stays loaded; gone with the process. */
export interface Idle {
  readonly origin: string;
  keepMs: number;
  /** ms; Infinity: in use, for ever, or being unloaded. */
  dueAt: number;
}

/** The one load in progress. */
export interface Load {
  readonly id: string;
  /** `workers`: may it be loaded onto the RPC workers; `starting`: the router is asked; `ended`: the cause is looked up. */
  phase: "workers" | "starting" | "loading" | "ended";
  /** ms; start of the phases `workers` and `starting`. */
  since: number;
  /** The workers are reserved for this load. */
  hasWorkers: boolean;
  /** ms without progress after which the load counts as stalled. */
  stallMs: number;
  progressAt: number;
  /** Why the scheduler ended it; null: it did not. */
  timeout: string | null;
  /** Unloaded on request: no failure of the model. */
  isUnwanted: boolean;
}

export interface Drain {
  readonly models: readonly string[] | "all";
  readonly began: number;
  /** Models with answers in flight when it began. */
  readonly busy: readonly string[];
  isDone: boolean;
}

const unknownWorld: World = {
  isReady: false,
  listed: new Map(),
  loaded: new Map(),
  modelsMax: 1,
  inputs: "",
  engineProblem: null,
  refusal: null,
  isPinned: () => false,
  isCached: () => true,
};

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
  /** Models that wait for a slot, in the order in which they get one. */
  readonly slotOrder = new Set<string>();
  /** Calls in a row that the router broke off. */
  brokenOff = 0;
  /** ms; no load before this. */
  retryAt = 0;
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
