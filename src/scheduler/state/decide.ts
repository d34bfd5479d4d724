// The scheduler's one decision: what has to be done about an event. Changes the state that it is given, and nothing else.
import { drainBegan, settleDrains } from "./drains.ts";
import type { Effect, Event } from "./events.ts";
import { settleFallbacks } from "./fallbacks.ts";
import { followFirstTokens, settleFirstTokens, tokenAnswered } from "./first-token.ts";
import { followProcesses, keep, unloadIdle, useEnds } from "./idle.ts";
import { endBackoff } from "./load-backoff.ts";
import {
  checkWorkersAgain,
  loadEnded,
  loadSent,
  resync,
  settleLoad,
  startNext,
  unloadSent,
  workersChecked,
} from "./loads.ts";
import { enter, explain, grant, leave, rank, refuse, request, shutDown } from "./queues.ts";
import { forget, type State } from "./state.ts";
import { settleUnloads, unloadOnRequest } from "./unloads.ts";
import type { World } from "./world.ts";

/** Effects in their order. The next event comes at `state.wakeAt` at the latest. */
export function decide(state: State, event: Event): readonly Effect[] {
  state.now = event.now;
  state.effects = [];
  notes[event.kind](state, event as never);
  if (event.kind !== "released" || !isCalm(state)) review(state);
  return state.effects;
}

const notes: { readonly [K in Event["kind"]]: (state: State, event: Extract<Event, { kind: K }>) => void } = {
  enter: (state, { ticket, reason }) => enter(state, ticket, reason),
  request: (state, { ticket }) => request(state, ticket),
  left: (state, { ticket }) => leave(state, ticket),
  released: (state, { id }) => useEnds(state, id),
  observed: (state, { world }) => observed(state, world),
  progress: ({ load, now }, { id }) => {
    if (load?.id === id) load.progressAt = now;
  },
  workersChecked: (state, { verdict }) => workersChecked(state, verdict),
  loadSent: (state, { error }) => loadSent(state, error),
  loadEnded,
  tokenAnswered: (state, { id, origin, answer }) => tokenAnswered(state, id, origin, answer),
  unload: (state, { id }) => unloadOnRequest(state, id),
  unloadSent: (state, { id, error }) => unloadSent(state, id, error),
  drainBegan: (state, { drain, models }) => drainBegan(state, drain, models),
  drainOver: ({ drains }, { drain }) => void drains.delete(drain),
  keep: (state, { id, keepMs }) => keep(state, id, keepMs),
  retry: (state, { id }) => endBackoff(state, id),
  shutdown: shutDown,
  tick: () => undefined,
};

function observed(state: State, world: World): void {
  if (world.inputs !== state.world.inputs) endBackoff(state, null);
  if (world.isBehind && !state.world.isBehind) state.behindSince = state.now;
  state.world = world;
  followProcesses(state);
  followFirstTokens(state);
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
  settleFirstTokens(state);
  settleLoad(state);
  settleFallbacks(state);
  refuse(state);
  rank(state);
  if (!state.isShutDown) unloadIdle(state);
  startNext(state);
  grant(state);
  explain(state);
  settleDrains(state);
  resync(state);
  forget(state);
}
