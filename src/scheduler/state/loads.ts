// Loads, one at a time, and the model slots for them. The gateway alone loads: the router takes a model whose answers go past it
// for idle, and would evict it while it answers.
import { GatewayError } from "../../core/errors.ts";
import type { Event, WorkersVerdict } from "./events.ts";
import { failSettings } from "./fallbacks.ts";
import { failLoad } from "./load-failures.ts";
import { isBelieved, type Load, type Model } from "./model.ts";
import { behindUntil, pinnedForTooLarge, placedBeside, wantedFor } from "./placed.ts";
import { fitsBeside, idleOf, type Room, roomFor, turnAfter } from "./placement.ts";
import { pinnedError, reject } from "./queues.ts";
import { nextInOrder } from "./slot-order.ts";
import { emit, isHeld, modelOf, type State, wake } from "./state.ts";
import { beginUnload, endUnload } from "./unloads.ts";

/** How long the preset may take to follow the workers: then the load is tried with those that the router has. */
const workersMs = 10_000;
/** How often workers that are not ready are checked without an event. */
const recheckMs = 1_000;
/** How often the router's list is read while a load or an unload is under way and no event came. */
const resyncMs = 1_000;
/** How often memory that no model accounts for is read again. */
const leftoversMs = 500;
/** Calls in a row that the router may break off, and ms between them. */
const mostBrokenOff = 8;
const brokenOffMs = 250;

/** Requests wait for the model, and nothing stands against its load. While it is held there is none: drains wait for loads. */
function isWanted(state: State, model: Model): boolean {
  const { isReady, loaded, memory } = state.world;
  if (model.queue.length === 0 || !isReady || loaded.has(model.id)) return false;
  // What it needs comes last: where that is not known yet, the answer reads what all processes hold, which took 0.5 ms of each load.
  return !isHeld(state, model) && model.fallback === null && memory.need(model.id) !== undefined;
}

/** Begins the next load, or makes a slot for it. */
export function startNext(state: State): void {
  state.isCrowded = false;
  for (;;) {
    const pausedUntil = Math.max(state.retryAt, behindUntil(state));
    const isPaused = pausedUntil > state.now;
    if (isPaused) wake(state, pausedUntil);
    const next = state.load || isPaused ? undefined : nextWanted(state);
    if (!next) {
      state.yielding = null;
      return;
    }
    const room = roomFor(placedBeside(state, next.id), wantedFor(state, next), state.yielding, state.now);
    if (room.kind === "free") beginLoad(state, next);
    else if (room.kind === "pinned") reject(state, next.id, pinnedError(state, next.id));
    else if (room.kind === "evict") {
      state.slotFor = next.id;
      for (const id of room.ids) beginUnload(state, modelOf(state, id), { slotFor: next.id });
    } else if (!waitsFor(state, room)) return;
  }
}

/** False: nothing else is to be done. */
function waitsFor(state: State, room: Room): boolean {
  state.isCrowded = true;
  wake(state, room.kind === "wait" ? room.until : Number.POSITIVE_INFINITY);
  if (state.world.memory.hasLeftovers()) wake(state, state.now + leftoversMs);
  const yields = room.kind === "wait" ? room.yields : null;
  if (state.yielding === yields) return false;
  // A model that is idle already leaves as soon as it yields.
  state.yielding = yields;
  return true;
}

/** A model that has just come into the cache is listed after the router's next reload. */
function nextWanted(state: State): Model | undefined {
  return nextInOrder(state, (id) => {
    const model = modelOf(state, id);
    return state.world.listed.has(id) && isWanted(state, model) && pinnedForTooLarge(state, model) === null;
  });
}

function beginLoad(state: State, model: Model): void {
  const { id, workersSince } = model;
  state.load = {
    id,
    phase: "workers",
    since: state.now,
    hasWorkers: false,
    stallMs: Number.POSITIVE_INFINITY,
    progressAt: state.now,
    timeout: null,
    isUnwanted: false,
  };
  emit(state, { kind: "checkWorkers", id, isLate: state.now - (workersSince ?? state.now) >= workersMs });
}

/** The world is another: workers that were not ready may be. */
export function checkWorkersAgain(state: State): void {
  for (const { workersSince } of state.models.values()) if (workersSince !== null) state.retryAt = state.now;
}

export function workersChecked(state: State, verdict: WorkersVerdict): void {
  const { load } = state;
  if (!load) return;
  const model = modelOf(state, load.id);
  load.hasWorkers = verdict.kind === "ready";
  if (verdict.kind === "wait") {
    model.workersSince ??= state.now;
    state.retryAt = state.now + recheckMs;
    return endLoad(state);
  }
  model.workersSince = null;
  if (verdict.kind === "refused") {
    endLoad(state);
    return reject(state, load.id, verdict.error);
  }
  // Much may have changed while the workers were checked.
  if (!isWanted(state, model) || !fitsBeside(wantedFor(state, model), placedBeside(state, load.id)))
    return endLoad(state);
  load.phase = "starting";
  load.since = state.now;
  load.progressAt = state.now;
  load.stallMs = verdict.stallMs;
  emit(state, { kind: "load", id: load.id });
}

export function loadSent(state: State, error: GatewayError | null): void {
  const { load } = state;
  if (!load) return;
  if (error) {
    endLoad(state);
    return routerRefused(state, load.id, error);
  }
  state.brokenOff = 0;
  load.phase = "loading";
}

export function unloadSent(state: State, id: string, error: GatewayError | null): void {
  const model = modelOf(state, id);
  const { unload } = model;
  if (!unload) return;
  unload.isSent = true;
  if (!error) return;
  endUnload(state, model, error);
  if (typeof unload.cause === "object") routerRefused(state, unload.cause.slotFor, error);
}

/** A router that was killed closes its connections a moment before its end is known: 2 of 38 requests were refused for it. */
function routerRefused(state: State, id: string, error: GatewayError): void {
  const isBrokenOff = error.code === "router_unavailable" && error.cause !== undefined;
  if (error.code === "router_unavailable" && !state.world.isReady) return;
  if (isBrokenOff && ++state.brokenOff <= mostBrokenOff) state.retryAt = state.now + brokenOffMs;
  else reject(state, id, error);
}

/** Follows the load in progress. */
export function settleLoad(state: State): void {
  const { load } = state;
  if (load?.phase !== "loading") return;
  const model = modelOf(state, load.id);
  const { world } = state;
  const value = world.listed.get(load.id);
  if (world.loaded.has(load.id) && isBelieved(model)) return succeed(state, load, model);
  // A router that is gone: requests wait for the next one.
  if (!world.isReady) return endLoad(state);
  if (value === undefined) return vanish(state, load.id, "went away");
  if (load.timeout !== null) {
    if (model.unload === null) explainEnd(state, load, model);
  } else if (value !== "unloaded") {
    if (model.unload === null) limit(state, load, model);
  } else if (!world.isCached(load.id)) vanish(state, load.id, "was removed");
  else if (load.isUnwanted || isHeld(state, model)) endLoad(state);
  else explainEnd(state, load, model);
}

function succeed(state: State, load: Load, model: Model): void {
  model.turn = turnAfter(state.now - load.since, state.now);
  endLoad(state);
}

function vanish(state: State, id: string, how: string): void {
  endLoad(state);
  reject(state, id, new GatewayError("model_not_found", `${id} ${how} while it was being loaded`));
}

function explainEnd(state: State, load: Load, model: Model): void {
  load.phase = "ended";
  emit(state, { kind: "explainEnd", id: load.id, since: model.firstTryAt ?? load.since });
}

/** Ends a load that has stalled or takes too long. */
function limit(state: State, load: Load, model: Model): void {
  const { loadTimeoutMs } = state.limits;
  const stalledAt = Math.max(load.since, load.progressAt) + load.stallMs;
  const lateAt = load.since + loadTimeoutMs;
  if (state.now >= stalledAt) {
    load.timeout = `it got on no further for ${load.stallMs / 1000} s`;
    const fields = { model: load.id, silentMs: load.stallMs };
    emit(state, { kind: "warn", message: "a load on RPC workers does not get on; it is ended", fields });
  } else if (state.now >= lateAt) load.timeout = `it was not loaded within ${loadTimeoutMs / 1000} s`;
  else return wake(state, Math.min(stalledAt, lateAt));
  beginUnload(state, model, "request");
}

/** A process may be killed: a model that is not known to fail is loaded once more, and with more memory where that was short. */
export function loadEnded(state: State, event: Extract<Event, { kind: "loadEnded" }>): void {
  const { isWorkerLost, isFault, isShort, why, workers } = event;
  const { load } = state;
  if (!load) return;
  const model = modelOf(state, load.id);
  endLoad(state);
  if (isWorkerLost) return;
  if (load.timeout === null && model.failing === null && model.firstTryAt === null) {
    model.firstTryAt = load.since;
    model.isShort = isShort;
    const isForSomeone = isShort && model.queue.length > 0;
    const [idle] = isForSomeone ? idleOf(placedBeside(state, model.id), state.yielding, state.now) : [];
    if (idle) beginUnload(state, modelOf(state, idle.id), { slotFor: model.id });
    return;
  }
  model.firstTryAt = null;
  model.isShort = false;
  const message = `${load.timeout ?? why}${workers}`;
  if (isFault && load.timeout === null) failSettings(state, model, message);
  else failLoad(state, model, message);
}

function endLoad(state: State): void {
  if (state.load?.hasWorkers) emit(state, { kind: "releaseWorkers" });
  state.load = null;
}

/** The router's events may be lost with their connection. */
export function resync(state: State): void {
  const isPending = state.load?.phase === "loading" || [...state.models.values()].some(({ unload }) => unload?.isSent);
  if (!isPending) state.resyncAt = Number.POSITIVE_INFINITY;
  else if (state.resyncAt === Number.POSITIVE_INFINITY) state.resyncAt = state.now + resyncMs;
  else if (state.resyncAt <= state.now) {
    emit(state, { kind: "readList" });
    state.resyncAt = state.now + resyncMs;
  }
  wake(state, state.resyncAt);
}
