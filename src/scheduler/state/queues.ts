// Requests: granted at once, kept in their model's queue, or rejected.
import { GatewayError, stoppingError } from "../../core/errors.ts";
import type { Ticket, WaitReason } from "./events.ts";
import { useBegins } from "./idle.ts";
import { backoffRefusal } from "./load-backoff.ts";
import { isBelieved, type Model } from "./model.ts";
import { tooLargeError } from "./placed.ts";
import { waitForSlot } from "./slot-order.ts";
import { emit, isHeld, isLoading, modelOf, type State, wake } from "./state.ts";

/** How long a model in the cache may take to appear on the router's list. */
const listedMs = 10_000;
/** With a full queue some answer usually ends within seconds. */
const queueRetryMs = 5_000;
const slotRetryMs = 30_000;
/** A process is given twice its slots, so that it has the next request when one ends; a few more cost nothing. */
const fewestAtOnce = 8;

/** The fast path: true grants a lease on a loaded model, and allocates nothing. False: the request has to be an event. */
export function admit(state: State, id: string, now: number): boolean {
  if (!state.world.loaded.has(id) || state.isShutDown) return false;
  const model = modelOf(state, id);
  if (model.queue.length > 0 || isFull(state, model) || !hasTurn(state, model)) return false;
  useBegins(model, now);
  return true;
}

/** The model is loaded and has given a token, is not held, and its process takes one more. */
function hasTurn(state: State, model: Model): boolean {
  const loaded = state.world.loaded.get(model.id);
  if (loaded === undefined || !isBelieved(model) || isHeld(state, model) || state.yielding === model.id) return false;
  return model.inFlight < Math.max(fewestAtOnce, 2 * loaded.slots);
}

function isFull(state: State, model: Model): boolean {
  return model.queue.length + model.elsewhere.size + model.inFlight >= queueLimitOf(state, model);
}

function queueLimitOf({ world, limits }: State, { id }: Model): number {
  return world.rules.get(id)?.queueLimit ?? limits.queueLimit;
}

function refusalOf(state: State, model: Model): GatewayError | null {
  if (state.isShutDown) return stoppingError();
  if (!isFull(state, model)) return null;
  const by = state.world.rules.get(model.id)?.queueLimit === undefined ? "--queue-limit" : "its maxQueue";
  const message = `${queueLimitOf(state, model)} requests for ${model.id} are queued or running (${by})`;
  return new GatewayError("busy", message, { retryAfterMs: queueRetryMs });
}

export function enter(state: State, ticket: Ticket, reason: WaitReason): void {
  const model = modelOf(state, ticket.id);
  const error = refusalOf(state, model);
  if (error) emit(state, { kind: "reject", ticket, error });
  else model.elsewhere.set(ticket, reason);
}

export function request(state: State, ticket: Ticket): void {
  const model = modelOf(state, ticket.id);
  model.elsewhere.delete(ticket);
  if (admit(state, ticket.id, state.now)) return emit(state, { kind: "grant", ticket });
  const error = refusalOf(state, model);
  if (error) return emit(state, { kind: "reject", ticket, error });
  ticket.queuedAt = state.now;
  // A request that has waited for something else before is queued where it would be without that.
  const behind = model.queue.findIndex((other) => other.number > ticket.number);
  model.queue.splice(behind < 0 ? model.queue.length : behind, 0, ticket);
}

export function leave(state: State, ticket: Ticket): void {
  const model = modelOf(state, ticket.id);
  model.elsewhere.delete(ticket);
  const at = model.queue.indexOf(ticket);
  if (at >= 0) model.queue.splice(at, 1);
}

/** All requests that wait for the model, or these. */
export function reject(state: State, id: string, error: GatewayError, tickets = modelOf(state, id).queue): void {
  // The queue loses each of them meanwhile.
  for (const ticket of tickets.slice()) {
    leave(state, ticket);
    emit(state, { kind: "reject", ticket, error });
  }
}

/** Rejects every request that waits, and those that come. */
export function shutDown(state: State): void {
  state.isShutDown = true;
  for (const { id, elsewhere, queue } of state.models.values())
    reject(state, id, stoppingError(), [...elsewhere.keys(), ...queue]);
}

/** Notes since when a model waits for a slot: one that has lost its slot begins again. */
export function rank(state: State): void {
  for (const model of state.models.values()) {
    if (model.queue.length === 0) {
      state.slotOrder.delete(model.id);
      model.unlistedSince = model.workersSince = null;
    } else if (!state.world.loaded.has(model.id) && !isHeld(state, model)) waitForSlot(state, model.id);
  }
}

export function grant(state: State): void {
  for (const model of state.models.values()) {
    while (hasTurn(state, model)) {
      const ticket = model.queue.shift();
      if (!ticket) break;
      state.slotOrder.delete(model.id);
      useBegins(model, state.now);
      emit(state, { kind: "grant", ticket });
    }
  }
}

/** Rejects requests for models that cannot be loaded, or not in time. */
export function refuse(state: State): void {
  const { world, limits } = state;
  for (const model of state.models.values()) {
    if (model.queue.length === 0 || isHeld(state, model)) continue;
    const isLoaded = world.loaded.has(model.id);
    const problem = isLoaded ? tokenRefusal(model) : world.isReady ? loadRefusal(state, model) : world.engineProblem;
    if (problem) reject(state, model.id, problem);
    else if (isLoaded) continue;
    else if (!world.isReady) rejectOverdue(state, model, "router", limits.routerWaitMs, noRouter);
    else rejectOverdue(state, model, "room", limits.loadTimeoutMs, noRoom);
  }
}

function loadRefusal(state: State, model: Model): GatewayError | null {
  if (state.world.refusal || isLoading(state, model.id)) return state.world.refusal;
  // Also while another model is loaded: what never fits does not wait for that.
  return unlistedError(state, model) ?? backoffRefusal(state, model) ?? tooLargeError(state, model);
}

/** Its process gives no token, and could not be unloaded yet. */
function tokenRefusal({ id, firstToken }: Model): GatewayError | null {
  return firstToken?.state === "refused" ? loadError(id, firstToken.why) : null;
}

export function loadError(id: string, why: string): GatewayError {
  return new GatewayError("model_load_failed", `${id} could not be loaded: ${why}`);
}

/** It may be removed while requests wait for it. */
function unlistedError(state: State, model: Model): GatewayError | null {
  if (state.world.listed.has(model.id)) {
    model.unlistedSince = null;
    return null;
  }
  model.unlistedSince ??= state.now;
  const until = model.unlistedSince + listedMs;
  if (state.world.isCached(model.id) && state.now < until) {
    wake(state, until);
    return null;
  }
  return new GatewayError("model_not_found", `the router does not list ${model.id}`);
}

/** `errorFor`: an error costs its stack, and this is asked at every event. */
function rejectOverdue(
  state: State,
  model: Model,
  reason: WaitReason,
  ms: number,
  errorFor: (state: State, id: string) => GatewayError,
): void {
  if (model.reason !== reason) return;
  const overdue = model.queue.filter((ticket) => overdueAt(model, ticket, ms) <= state.now);
  if (overdue.length > 0) reject(state, model.id, errorFor(state, model.id), overdue);
}

function noRouter(): GatewayError {
  return new GatewayError("router_unavailable", "the router is not running");
}

function overdueAt(model: Model, ticket: Ticket, ms: number): number {
  return Math.max(ticket.queuedAt, model.reasonSince) + ms;
}

function noRoom(state: State, id: string): GatewayError {
  const waited = `within ${state.limits.loadTimeoutMs / 1000} s`;
  const message = `no model slot for ${id} ${waited}: --models-max is ${state.world.modelsMax}, and all are in use`;
  return new GatewayError("busy", message, { retryAfterMs: slotRetryMs });
}

export function pinnedError(state: State, id: string): GatewayError {
  const message = `no model slot for ${id}: --models-max is ${state.world.modelsMax}, and all hold pinned models`;
  return new GatewayError("busy", message, { retryAfterMs: slotRetryMs });
}

/** Notes what each queue waits for, and when that has lasted too long. */
export function explain(state: State): void {
  const { routerWaitMs, loadTimeoutMs } = state.limits;
  for (const model of state.models.values()) {
    if (model.queue.length === 0) continue;
    const reason = reasonOf(state, model);
    if (reason !== model.reason) model.reasonSince = state.now;
    model.reason = reason;
    if (reason !== "router" && reason !== "room") continue;
    const ms = reason === "router" ? routerWaitMs : loadTimeoutMs;
    for (const ticket of model.queue) wake(state, overdueAt(model, ticket, ms));
  }
}

function reasonOf(state: State, model: Model): WaitReason {
  if (isHeld(state, model)) return "drain";
  if (state.world.loaded.has(model.id)) return isBelieved(model) ? "turn" : "load";
  if (!state.world.isReady) return "router";
  if (model.workersSince !== null) return "workers";
  return state.load === null && state.isCrowded ? "room" : "load";
}
