// The scheduler's one decision: what has to be done about an event. Changes the state that it is given, and nothing else.
import { drainBegan, drainOver, settleDrains } from "./drains.ts";
import type { Effect, Event } from "./events.ts";
import { followProcesses, keep, unloadIdle, useEnds } from "./idle.ts";
import {
  checkWorkersAgain,
  loadEnded,
  loadRefused,
  loadStarted,
  resync,
  settleLoad,
  startNext,
  unloadFailed,
  workersChecked,
} from "./loads.ts";
import { enter, explain, grant, leave, rank, refuse, rejectEverything, request } from "./queues.ts";
import { forget, type State } from "./state.ts";
import type { World } from "./types.ts";
import { settleUnloads, unloadOnRequest, unloadSent } from "./unloads.ts";

/** Effects in their order. The next event comes at `state.wakeAt` at the latest. */
export function decide(state: State, event: Event): readonly Effect[] {
  state.now = event.now;
  state.effects = [];
  note(state, event);
  if (event.kind !== "released" || !isCalm(state)) review(state);
  return state.effects;
}

function note(state: State, event: Event): void {
  switch (event.kind) {
    case "enter":
      return enter(state, event.ticket, event.reason);
    case "request":
      return request(state, event.ticket);
    case "left":
      return leave(state, event.ticket);
    case "released":
      return useEnds(state, event.id);
    case "observed":
      return observed(state, event.world);
    case "progress":
      if (state.load?.id === event.id) state.load.progressAt = state.now;
      return;
    case "workersChecked":
      return workersChecked(state, event.verdict);
    case "loadStarted":
      return loadStarted(state);
    case "loadRefused":
      return loadRefused(state, event.error);
    case "loadEnded":
      return loadEnded(state, event);
    case "unload":
      return unloadOnRequest(state, event.id);
    case "unloadSent":
      return unloadSent(state, event.id);
    case "unloadFailed":
      return unloadFailed(state, event.id, event.error);
    case "drainBegan":
      return drainBegan(state, event.drain, event.models);
    case "drainOver":
      return drainOver(state, event.drain);
    case "keep":
      return keep(state, event.id, event.keepMs);
    case "retry":
      for (const model of state.models.values()) if (event.id === null || event.id === model.id) model.failing = null;
      return;
    case "shutdown":
      state.isShutDown = true;
      return rejectEverything(state);
    case "tick":
  }
}

function observed(state: State, world: World): void {
  state.world = world;
  followProcesses(state);
  checkWorkersAgain(state);
}

/** An answer's end changes nothing for others. */
function isCalm(state: State): boolean {
  if (state.load !== null || state.drains.size > 0 || state.wakeAt <= state.now) return false;
  for (const { queue } of state.models.values()) if (queue.length > 0) return false;
  return true;
}

/** Applies every rule. In this order a second review at the same time would find nothing left to do. */
function review(state: State): void {
  state.wakeAt = Number.POSITIVE_INFINITY;
  settleUnloads(state);
  settleLoad(state);
  refuse(state);
  rank(state);
  startNext(state);
  grant(state);
  explain(state);
  settleDrains(state);
  if (!state.isShutDown) unloadIdle(state);
  resync(state);
  forget(state);
}
