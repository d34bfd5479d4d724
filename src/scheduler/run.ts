// Runs the scheduler: feeds events to its state, carries out the effects, and keeps the one timer. Decides nothing.
import { GatewayError, toGatewayError } from "../core/errors.ts";
import type { KeepAlive } from "../core/keep-alive.ts";
import type { Instance } from "../engines/llama/instances.ts";
import type { Router } from "../engines/llama/router.ts";
import type { Drainer } from "../execute/router-actions.ts";
import { createLeases, type Lease } from "./leases.ts";
import type { RpcGate } from "./rpc-gate.ts";
import { decide } from "./state/decide.ts";
import type { Effect, Event } from "./state/events.ts";
import { type FailingLoad, failingLoads } from "./state/load-backoff.ts";
import { admit } from "./state/queues.ts";
import { createState, type Limits, type Ticket, type WaitReason } from "./state/state.ts";
import { expiresAt, inFlight, isOpen, keepsWaiting, type Waiting, waiting } from "./state/tickets.ts";
import { createWorldView, type WorldSources } from "./world.ts";

export type { Lease } from "./leases.ts";

/** Answers that a drain has cut, as they outlasted it. */
export interface CutAnswers {
  readonly count: number;
  /** ms since the epoch. */
  readonly at: number;
}

/** A request that waits for something else before it waits for its model. */
export interface Entrance {
  readonly ticket: Ticket;
  /** It waits for something else again; it keeps its number. */
  again(): void;
  /** Safe to call twice. */
  leave(): void;
}

export interface Scheduler extends Drainer {
  /** The fast path: a lease at once; null: the request has to wait, or is rejected, with {@link Scheduler.acquire}. */
  tryAcquire(id: string): Lease | null;
  /**
   * A loaded model, kept loaded until the lease is released. Errors: `busy`, `router_unavailable`, `engine_missing`,
   * `model_not_found`, `model_load_failed`, `load_failing`, `too_few_workers`, `cancelled`, `shutting_down`.
   */
  acquire(id: string, signal: AbortSignal, entrance?: Entrance): Promise<Lease>;
  /** Counts a request that waits for something else first. `onReject`: it need not wait any more. Errors: `busy`, `shutting_down`. */
  enter(id: string, reason: WaitReason, onReject: (error: GatewayError) => void): Entrance;
  /** Unloads a model once its answers in flight have ended. */
  unload(id: string, signal: AbortSignal): Promise<void>;
  /** Ends a model that can never answer again, without waiting for its answers. */
  abandon(id: string): Promise<void>;
  /** An instance takes no connections: unloads it, unless it is gone already. */
  replace(instance: Instance): Promise<void>;
  /** Where a loaded model listens, for a question that neither loads it nor counts as its use; null: not loaded, or held. */
  peek(id: string): Instance | null;
  /** A request sets how long its model stays loaded after the last answer. */
  keep(id: string, keepAlive: KeepAlive): void;
  /** When a loaded model is unloaded if it is not used, ms since the epoch; null: not by itself. */
  expiresAt(id: string): number | null;
  /** Answers in flight, by model. */
  inFlight(): ReadonlyMap<string, number>;
  waiting(): readonly Waiting[];
  /** Whether requests wait for this process, in it or before it, or for any model slot. */
  keepsWaiting(instance: Instance): boolean;
  /** Models whose last load failed. */
  failing(): ReadonlyMap<string, FailingLoad>;
  /** Models that were drained, and what the last drain of each has cut. */
  cuts(): ReadonlyMap<string, CutAnswers>;
  /** Ends the backoff of a model whose load failed, or of all of them. */
  resetBackoff(id?: string): void;
  /** To be called when anything changed that the scheduler reads of the world. */
  observe(): void;
  /** The router told of a model's load. */
  progressed(id: string): void;
  /** Rejects every request that waits, and those that come. */
  shutDown(): void;
}

export interface SchedulerOptions extends WorldSources {
  readonly router: Router;
  readonly gate: RpcGate;
  readonly limits: Limits;
  /** The first answer of a model begins, and each further one. */
  readonly onUse: (id: string) => void;
  /** The last answer in flight of a model has ended. */
  readonly onIdle: (id: string) => void;
  readonly onLoadFailed: (id: string) => void;
  /** A drain has ended; `cut` answers had not. */
  readonly onDrained: (id: string, cut: number) => void;
  readonly warn: (message: string, fields: object) => void;
  readonly now: () => number;
}

/** There are no dates beyond it: for ever. */
const longestKeepMs = 100 * 365 * 86_400_000;
const longestTimerMs = 2 ** 31 - 1;

interface Waiter {
  grant(lease: Lease): void;
  reject(error: GatewayError): void;
}

export function createScheduler(options: SchedulerOptions): Scheduler {
  const { router, gate, now } = options;
  const { limits } = options;
  const state = createState({ ...limits, keepAliveMs: keepTime(limits.keepAliveMs) });
  const view = createWorldView(options);
  const waiters = new Map<number, Waiter>();
  const drained = new Map<number, () => void>();
  const unloads = new Map<string, { resolve(): void; reject(error: GatewayError): void }[]>();
  const cuts = new Map<string, CutAnswers>();
  const events: (Event | "look")[] = [];
  let isDeciding = false;
  let tickets = 0;
  let drains = 0;
  let timer: NodeJS.Timeout | undefined;
  let timerAt = Number.POSITIVE_INFINITY;
  const leases = createLeases(limits.drainMs, (id) => {
    dispatch({ kind: "released", id, now: now() });
    if (!state.models.get(id)?.inFlight) options.onIdle(id);
  });

  /** An effect may bring about the next event: one is decided after the other. The world is looked at when it is decided. */
  function dispatch(event: Event | "look"): void {
    events.push(event);
    if (isDeciding) return;
    isDeciding = true;
    try {
      for (let next = events.shift(); next; next = events.shift()) {
        const decided: Event = next === "look" ? { kind: "observed", world: view.look(), now: now() } : next;
        for (const effect of decide(state, decided)) run(effect);
      }
    } finally {
      isDeciding = false;
    }
    setTimer();
  }

  function setTimer(): void {
    if (state.wakeAt >= timerAt) return;
    clearTimeout(timer);
    timerAt = state.wakeAt;
    timer = setTimeout(
      () => {
        timerAt = Number.POSITIVE_INFINITY;
        dispatch({ kind: "tick", now: now() });
      },
      Math.min(Math.max(1, timerAt - now()), longestTimerMs),
    ).unref();
  }

  function run(effect: Effect): void {
    switch (effect.kind) {
      case "grant":
        return grant(effect.ticket);
      case "reject":
        return take(effect.ticket)?.reject(effect.error);
      case "checkWorkers":
        return void checkWorkers(effect.id, effect.isLate);
      case "releaseWorkers":
        return gate.release();
      case "load":
        return void load(effect.id);
      case "explainEnd":
        return void explainEnd();
      case "loadFailed":
        return options.onLoadFailed(effect.id);
      case "unload":
        return void unload(effect.id);
      case "unloaded":
        return unloaded(effect.id, effect.error);
      case "cut":
        return leases.cut(effect.id);
      case "drained":
        return endDrain(effect.drain, effect.cut);
      case "readList":
        return void router.refresh();
      case "warn":
        return options.warn(effect.message, effect.fields);
    }
  }

  function take({ number }: Ticket): Waiter | undefined {
    const waiter = waiters.get(number);
    waiters.delete(number);
    return waiter;
  }

  function grant(ticket: Ticket): void {
    const lease = give(ticket.id);
    const waiter = take(ticket);
    if (waiter) waiter.grant(lease);
    // It left while this was decided.
    else lease.release();
  }

  function give(id: string): Lease {
    const instance = view.instance(id);
    if (!instance) throw new GatewayError("internal", `${id} was granted and is not loaded`);
    options.onUse(id);
    return leases.give(instance);
  }

  async function checkWorkers(id: string, isLate: boolean): Promise<void> {
    const checked = gate.check(id, isLate);
    const verdict = checked instanceof Promise ? await checked : checked;
    dispatch({ kind: "workersChecked", verdict, now: now() });
  }

  async function load(id: string): Promise<void> {
    try {
      await router.client().load(id);
    } catch (error) {
      return dispatch({ kind: "loadRefused", error: toGatewayError(error), now: now() });
    }
    await router.refresh();
    dispatch({ kind: "loadStarted", now: now() });
  }

  async function explainEnd(): Promise<void> {
    const why = router.complaints() || "the engine ended while loading it";
    const { isWorkerLost, workers } = await gate.explain();
    dispatch({ kind: "loadEnded", isWorkerLost, why, workers, now: now() });
  }

  async function unload(id: string): Promise<void> {
    try {
      await router.refresh();
      if (view.mayBeLoaded(id)) await router.client().unload(id);
      await router.refresh();
    } catch (error) {
      return dispatch({ kind: "unloadFailed", id, error: toGatewayError(error), now: now() });
    }
    dispatch({ kind: "unloadSent", id, now: now() });
  }

  function unloaded(id: string, error: GatewayError | null): void {
    const callers = unloads.get(id) ?? [];
    unloads.delete(id);
    for (const { resolve, reject } of callers) if (error) reject(error);
      else resolve();
  }

  function untilUnloaded(id: string): Promise<void> {
    return new Promise((resolve, reject) => {
      unloads.set(id, [...(unloads.get(id) ?? []), { resolve, reject }]);
      dispatch({ kind: "unload", id, now: now() });
    });
  }

  function endDrain(drain: number, cut: ReadonlyMap<string, number>): void {
    for (const [id, count] of cut) {
      cuts.set(id, { count, at: now() });
      options.onDrained(id, count);
    }
    drained.get(drain)?.();
    drained.delete(drain);
  }

  async function drain(models: readonly string[] | "all", signal: AbortSignal): Promise<() => void> {
    const number = ++drains;
    let isOver = false;
    const end = (): void => {
      if (isOver) return;
      isOver = true;
      dispatch({ kind: "drainOver", drain: number, now: now() });
    };
    return new Promise((resolve, reject) => {
      // The change is not wanted any more, or the gateway stops: then no answer is cut.
      const giveUp = (): void => {
        drained.delete(number);
        end();
        reject(signal.reason instanceof GatewayError ? signal.reason : new GatewayError("cancelled", "it was given up"));
      };
      if (signal.aborted) return giveUp();
      signal.addEventListener("abort", giveUp, { once: true });
      drained.set(number, () => {
        signal.removeEventListener("abort", giveUp);
        resolve(end);
      });
      dispatch({ kind: "drainBegan", drain: number, models, now: now() });
    });
  }

  function newTicket(id: string): Ticket {
    const since = now();
    return { number: ++tickets, id, since, queuedAt: since };
  }

  function enter(id: string, reason: WaitReason, onReject: (error: GatewayError) => void): Entrance {
    const ticket = newTicket(id);
    let refusal: GatewayError | null = null;
    let isIn = false;
    const reject = (error: GatewayError): void => {
      if (isIn) onReject(error);
      else refusal = error;
    };
    const wait = (): void => {
      waiters.set(ticket.number, { grant: (lease) => lease.release(), reject });
      dispatch({ kind: "enter", ticket, reason, now: now() });
    };
    wait();
    isIn = true;
    if (refusal) throw refusal as GatewayError;
    return { ticket, again: wait, leave: () => leave(ticket) };
  }

  function leave(ticket: Ticket): void {
    if (waiters.delete(ticket.number)) dispatch({ kind: "left", ticket, now: now() });
  }

  function tryAcquire(id: string): Lease | null {
    return !isDeciding && admit(state, id, now()) ? give(id) : null;
  }

  async function acquire(id: string, signal: AbortSignal, entrance?: Entrance): Promise<Lease> {
    if (signal.aborted) throw new GatewayError("cancelled", "the client left");
    return (entrance ? null : tryAcquire(id)) ?? queued(entrance?.ticket ?? newTicket(id), signal);
  }

  function queued(ticket: Ticket, signal: AbortSignal): Promise<Lease> {
    return new Promise((resolve, reject) => {
      const left = (): void => {
        leave(ticket);
        reject(new GatewayError("cancelled", "the client left"));
      };
      signal.addEventListener("abort", left, { once: true });
      waiters.set(ticket.number, {
        grant: (lease) => {
          signal.removeEventListener("abort", left);
          resolve(lease);
        },
        reject: (error) => {
          signal.removeEventListener("abort", left);
          reject(error);
        },
      });
      dispatch({ kind: "request", ticket, now: now() });
    });
  }

  return {
    tryAcquire,
    acquire,
    enter,
    drain,
    unload: async (id, signal) => {
      const end = await drain([id], signal);
      try {
        await untilUnloaded(id);
      } finally {
        end();
      }
    },
    abandon: untilUnloaded,
    replace: async ({ id, origin }) => {
      await router.refresh();
      // A process that lost its listener but lives stays `loaded` for the router; unloading cures it.
      if (view.instance(id)?.origin === origin && router.isReady()) await untilUnloaded(id);
    },
    peek: (id) => (isOpen(state, id) ? view.instance(id) : null),
    keep: (id, keepAlive) => {
      if (keepAlive.kind === "default") return;
      const ms = keepAlive.kind === "forever" ? Number.POSITIVE_INFINITY : keepAlive.seconds * 1000;
      dispatch({ kind: "keep", id, keepMs: keepTime(ms), now: now() });
    },
    expiresAt: (id) => expiresAt(state, id, now()),
    inFlight: () => inFlight(state),
    waiting: () => waiting(state, now()),
    keepsWaiting: (instance) => keepsWaiting(state, instance.id, instance),
    failing: () => failingLoads(state),
    cuts: () => cuts,
    resetBackoff: (id) => dispatch({ kind: "retry", id: id ?? null, now: now() }),
    observe: () => dispatch("look"),
    progressed: (id) => dispatch({ kind: "progress", id, now: now() }),
    shutDown: () => dispatch({ kind: "shutdown", now: now() }),
  };
}

function keepTime(ms: number): number {
  return ms > longestKeepMs ? Number.POSITIVE_INFINITY : ms;
}
