// Who may use which model when: lets requests in, in turn, and keeps them waiting while a change drains their model.
// Loading is the loader's, counting the answers under way the leases'.
import { GatewayError } from "../core/errors.ts";
import type { Instance } from "../engines/llama/instances.ts";
import type { Router } from "../engines/llama/router.ts";
import type { Drainer } from "../execute/router-actions.ts";
import type { Changes } from "./change-signal.ts";
import { createHolds } from "./holds.ts";
import { createLeases, type Lease, type UseListener } from "./leases.ts";
import { createCoolDowns, type FailingLoad } from "./load-backoff.ts";
import { createLoader } from "./loader.ts";
import { createLines, type Waiter } from "./queues.ts";
import type { LoadGate } from "./rpc-gate.ts";
import { atOnceFor, createSlots, identityOf } from "./slots.ts";
import { createWaitingBook, type Ticket, type Waiting, type WaitReason } from "./tickets.ts";

export type { Lease } from "./leases.ts";

/** Answers that a change has cut, as they outlasted its drain. */
export interface CutAnswers {
  readonly count: number;
  /** ms since the epoch. */
  readonly at: number;
}

export interface Admission extends Drainer {
  /** Notes a request that waits for something before it asks for the model. Errors: `busy`. */
  enter(id: string, reason: WaitReason): Ticket;
  /**
   * A loaded model, kept loaded until the lease is released. Waits for the router, for a drain, for room, for the load, and
   * for its turn. Errors: `busy`, `router_unavailable`, `engine_missing`, `model_not_found`, `model_load_failed`,
   * `load_failing`, `too_few_workers`, `cancelled`.
   */
  acquire(id: string, signal: AbortSignal, ticket?: Ticket): Promise<Lease>;
  /** Unloads a model once its answers are through. */
  unload(id: string, signal: AbortSignal): Promise<void>;
  /**
   * Unloads a model that nobody uses. `busy`: it is used, being loaded or held by somebody else; `gone`: it is not
   * loaded any more, or anew.
   */
  unloadIdle(instance: Instance): Promise<"unloaded" | "busy" | "gone">;
  /** Told of every lease that begins, and of the models whose last one is over. */
  onUse(listener: UseListener): void;
  /** Where a loaded model listens, for a question that neither loads it nor counts as its use; null: not loaded, or held. */
  peek(id: string): Instance | null;
  /** Answers in flight, by model. */
  inFlight(): ReadonlyMap<string, number>;
  waiting(): readonly Waiting[];
  /** Whether requests wait for this process, here or in it, or for the place of some model. */
  keepsWaiting(instance: Instance): boolean;
  /** Models whose last load failed. */
  failing(): ReadonlyMap<string, FailingLoad>;
  /** Models that were drained: how many answers the last drain cut. */
  cuts(): ReadonlyMap<string, CutAnswers>;
  /** Somebody asks for a model whose load failed, or for all of them, to be tried again. */
  forgive(id?: string): void;
  /** An instance takes no connections: has it loaded anew, unless that has happened already. */
  replace(instance: Instance): Promise<void>;
  /** Ends a model that can never answer again, without waiting for the answers in flight; nobody is let in meanwhile. */
  abandon(id: string): Promise<void>;
  /** Something changed that a waiter may wait for. */
  poke(): void;
}

/** How long a model that was seen in the cache may take to appear on the router's list. */
const listedMs = 10_000;

export interface AdmissionOptions {
  readonly router: Router;
  readonly changes: Changes;
  readonly gate: LoadGate;
  readonly modelsMax: () => number;
  /** Requests per model, waiting and under way. */
  readonly queueLimit: number;
  readonly drainMs: number;
  /** When (ms) the router last told of a model; 0 for never. */
  readonly progressAt: (id: string) => number;
  readonly warn: (message: string, fields: object) => void;
  readonly loadTimeoutMs: number;
  /** Whether the cache still holds a model, as far as anybody knows. */
  readonly isCached: (id: string) => boolean;
  /** Whether the document keeps a model loaded. */
  readonly isPinned: (id: string) => boolean;
  /** Changes with the model's file; null: nobody knows just now. */
  readonly fileOf: (id: string) => string | null;
  readonly routerWaitMs: number;
  /** Why there will be no router; null where there is one or will be. */
  readonly engineProblem: () => GatewayError | null;
  /** A load failed. */
  readonly onFailing: (id: string) => void;
  /** A drain is over; `cut` answers were not through. */
  readonly onDrained: (id: string, cut: number) => void;
  readonly now: () => number;
}

/** A drain that is begun anew within so long, in ms, is the same one. */
const resumedMs = 5_000;

export function createAdmission(options: AdmissionOptions): Admission {
  const { router, changes, gate, now } = options;
  const leases = createLeases({ now, drainMs: options.drainMs, onRelease: changes.poke });
  const inFlight = (id: string): number => leases.counts().get(id) ?? 0;
  const book = createWaitingBook({ limit: options.queueLimit, inFlight, now });
  const coolDowns = createCoolDowns({ identity: (id) => identityOf(router, id, options.fileOf(id)), now });
  const lines = createLines(changes.poke);
  const slots = createSlots(router);
  const cuts = new Map<string, CutAnswers>();
  /** Drains that were given up: when they began, and when that was. */
  const givenUp = new Map<string, { readonly began: number; readonly at: number }>();
  const { isHeld, hold } = createHolds(changes.poke);
  let isServing = false;
  const loader = createLoader({
    ...options,
    coolDowns,
    wanted: lines.inOrder,
    waiting: (id) => lines.of(id).length,
    inFlight,
    lastUsed: leases.lastUsed,
    isHeld,
    hold,
    onFailed: (id, error) => {
      lines.reject(id, () => error);
      if (error.code === "model_load_failed") options.onFailing(id);
    },
  });

  function hasTurn(instance: Instance): boolean {
    return inFlight(instance.id) < atOnceFor(slots(instance)) && !loader.yields(instance.id);
  }

  async function acquire(id: string, signal: AbortSignal, known?: Ticket): Promise<Lease> {
    if (signal.aborted) throw new GatewayError("cancelled", "the client left");
    // A loaded model answers by itself, whatever its router does.
    const ready = isHeld(id) || lines.of(id).length > 0 ? null : router.instances.get(id);
    if (ready && hasTurn(ready)) {
      if (known) known.leave();
      else book.requireRoom(id);
      return leases.give(ready);
    }
    const ticket = known ?? book.enter(id, "load");
    const lease = lines.join(ticket, signal);
    serveAll();
    if (!isServing) void serve();
    return lease;
  }

  /** As long as somebody waits. */
  async function serve(): Promise<void> {
    isServing = true;
    try {
      while (lines.inOrder().length > 0) {
        await changes.next();
        serveAll();
      }
    } finally {
      isServing = false;
    }
  }

  function serveAll(): void {
    for (const id of lines.inOrder()) serveLine(id);
    loader.work();
  }

  function serveLine(id: string): void {
    if (isHeld(id)) return lines.waitFor(id, "drain");
    const instance = router.instances.get(id);
    if (instance) {
      while (hasTurn(instance)) {
        const waiter = lines.take(id);
        if (!waiter) return;
        waiter.resolve(leases.give(instance));
      }
      lines.waitFor(id, "turn");
      return;
    }
    lines.rank(id);
    if (!router.isReady()) return waitForRouter(id);
    const refusal = gate.refusal() ?? (loader.isLoading(id) ? null : (unlisted(id) ?? coolDowns.refusal(id)));
    if (refusal) return lines.reject(id, () => refusal);
    const reason = loader.reasonFor(id);
    lines.waitFor(id, reason);
    if (reason === "room") lines.reject(id, (waiter) => (hasWaited(waiter, options.loadTimeoutMs) ? noRoom(id) : null));
  }

  function waitForRouter(id: string): void {
    const missing = options.engineProblem();
    lines.waitFor(id, "router");
    lines.reject(id, (waiter) => {
      if (missing) return missing;
      if (!hasWaited(waiter, options.routerWaitMs)) return null;
      return new GatewayError("router_unavailable", "the router is not running");
    });
  }

  function hasWaited({ ticket }: Waiter, ms: number): boolean {
    return now() - ticket.reasonSince > ms;
  }

  /** It may be removed while somebody waits for it. */
  function unlisted(id: string): GatewayError | null {
    const { models } = router.snapshot();
    if (models.state === "unknown" || models.value.some((model) => model.id === id)) {
      lines.listed(id);
      return null;
    }
    if (options.isCached(id) && now() - lines.unlistedSince(id, now()) <= listedMs) return null;
    return new GatewayError("model_not_found", `the router does not list ${id}`);
  }

  function noRoom(id: string): GatewayError {
    const most = options.modelsMax();
    return new GatewayError(
      "busy",
      `no room for ${id} within ${options.loadTimeoutMs / 1000} s: each of the ${most} places (--models-max) is in use`,
      { retryAfterMs: 30_000 },
    );
  }

  /** What was given up a moment ago and begins anew, for more models or for others, goes on where it was. */
  function drainBegan(models: readonly string[] | "all"): number {
    const before = models === "all" ? [] : models.map((id) => givenUp.get(id));
    givenUp.clear();
    return (
      Math.max(...before.map((entry) => (entry && now() - entry.at < resumedMs ? entry.began : now())), 0) || now()
    );
  }

  async function drain(models: readonly string[] | "all", signal: AbortSignal): Promise<() => void> {
    const letIn = hold(models);
    const began = drainBegan(models);
    const deadline = began + options.drainMs;
    const busy = (): boolean =>
      models === "all"
        ? leases.counts().size > 0 || loader.isAnyLoading()
        : models.some((id) => inFlight(id) > 0 || loader.isLoading(id));
    const drained = models === "all" ? [...leases.counts().keys()] : models.filter((id) => inFlight(id) > 0);
    while (busy() && now() < deadline && !signal.aborted) await changes.next(signal, Math.max(1, deadline - now()));
    if (signal.aborted) {
      // Nobody wants the change any more, or the gateway stops: then the answers have a grace of their own.
      if (models !== "all") for (const id of models) givenUp.set(id, { began, at: now() });
      letIn();
      throw signal.reason instanceof GatewayError ? signal.reason : new GatewayError("cancelled", "it was given up");
    }
    const cut = leases.cut(models);
    for (const id of drained) {
      const count = cut.get(id) ?? 0;
      cuts.set(id, { count, at: now() });
      options.onDrained(id, count);
    }
    return letIn;
  }

  async function unloadHeld(id: string): Promise<void> {
    const letIn = hold([id]);
    try {
      await loader.unload(id);
    } finally {
      letIn();
    }
  }

  return {
    acquire,
    drain,
    enter: book.enter,
    poke: changes.poke,
    peek: (id) => (isHeld(id) ? null : router.instances.get(id)),
    inFlight: leases.counts,
    waiting: book.report,
    keepsWaiting: (instance) =>
      inFlight(instance.id) > slots(instance) ||
      book.report().some((entry) => entry.model === instance.id || entry.for === "room"),
    failing: coolDowns.failing,
    cuts: () => cuts,
    forgive: coolDowns.forgive,
    onUse: leases.onUse,
    unloadIdle: async (instance) => {
      const { id } = instance;
      // By its address: two looks at the router's list at once make two objects of one process.
      if (router.instances.get(id)?.origin !== instance.origin) return "gone";
      if (inFlight(id) > 0 || loader.isLoading(id) || isHeld(id) || !router.isReady()) return "busy";
      await unloadHeld(id);
      return "unloaded";
    },
    abandon: unloadHeld,
    replace: async (instance) => {
      await router.refresh();
      // A process that lost its listener but lives stays "loaded" in the router's eyes for ever; unloading cures it.
      if (router.instances.get(instance.id) === instance && router.isReady()) await loader.unload(instance.id);
    },
    unload: async (id, signal) => {
      const letIn = await drain([id], signal);
      try {
        await loader.unload(id, signal);
      } finally {
        letIn();
      }
    },
  };
}
