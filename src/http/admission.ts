// Who may use which model when: leases for answers in flight, and draining. Loading on demand is the loader's.
import { GatewayError } from "../core/errors.ts";
import type { Instance } from "../engines/instances.ts";
import type { Router } from "../engines/router.ts";
import type { Drainer } from "../execute/router-actions.ts";
import type { Changes } from "./changes.ts";
import type { LoadGate } from "./load-gate.ts";
import { createLoader } from "./loader.ts";

export interface Lease {
  readonly instance: Instance;
  /** Why its answer is cut: a drain waited for it in vain, and the model is ended under it. Null: it is not. */
  overdue(): GatewayError | null;
  release(): void;
}

export interface UseListener {
  begun(instance: Instance): void;
  over(id: string): void;
}

export interface Admission extends Drainer {
  /**
   * A loaded model, kept loaded until the lease is released. Waits for the router, for a drain, for room, and for the
   * load. Errors: `router_unavailable`, `engine_missing`, `model_not_found`, `model_load_failed`, `too_few_workers`,
   * `cancelled`.
   */
  acquire(id: string, signal: AbortSignal): Promise<Lease>;
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
  /** An instance takes no connections: has it loaded anew, unless that has happened already. */
  replace(instance: Instance): Promise<void>;
  /** Ends a model that can never answer again, without waiting for the answers in flight; nobody is let in meanwhile. */
  abandon(id: string): Promise<void>;
  /** Something changed that a waiter may wait for. */
  poke(): void;
}

export function createAdmission(options: {
  readonly router: Router;
  readonly changes: Changes;
  readonly gate: LoadGate;
  readonly modelsMax: () => number;
  readonly drainMs: number;
  /** When (ms) the router last told of a model; 0 for never. */
  readonly progressAt: (id: string) => number;
  readonly warn: (message: string, fields: object) => void;
  readonly loadTimeoutMs: number;
  /** Whether the cache still holds a model, as far as anybody knows. */
  readonly isCached: (id: string) => boolean;
  readonly routerWaitMs: number;
  /** Why there will be no router; null where there is one or will be. */
  readonly engineProblem: () => GatewayError | null;
  readonly now: () => number;
}): Admission {
  const { router, changes, gate, now } = options;
  const leases = new Map<string, number>();
  const open = new Set<OpenLease>();
  const lastUsed = new Map<string, number>();
  const draining = new Map<string, number>();
  let drainingAll = 0;
  const useListeners: UseListener[] = [];
  const loader = createLoader({
    router,
    changes,
    gate,
    modelsMax: options.modelsMax,
    loadTimeoutMs: options.loadTimeoutMs,
    isCached: options.isCached,
    now,
    progressAt: options.progressAt,
    warn: options.warn,
    isHeld,
    hold,
    isInUse: (id) => leases.has(id),
    lastUsed: (id) => lastUsed.get(id) ?? 0,
  });

  function isHeld(id: string): boolean {
    return drainingAll > 0 || (draining.get(id) ?? 0) > 0;
  }

  function lease(instance: Instance): Lease {
    const letGo = instance.retain();
    leases.set(instance.id, (leases.get(instance.id) ?? 0) + 1);
    lastUsed.set(instance.id, now());
    const entry: OpenLease = { id: instance.id, isOverdue: false };
    open.add(entry);
    for (const listener of useListeners) listener.begun(instance);
    return {
      instance,
      overdue: () => (entry.isOverdue ? overdueError(instance.id, options.drainMs) : null),
      release: () => {
        if (!open.delete(entry)) return;
        letGo();
        lastUsed.set(instance.id, now());
        countDown(leases, instance.id);
        if (!leases.has(instance.id)) for (const listener of useListeners) listener.over(instance.id);
        changes.poke();
      },
    };
  }

  async function acquire(id: string, signal: AbortSignal): Promise<Lease> {
    // A loaded model answers by itself, whatever its router does.
    const ready = isHeld(id) ? null : router.instances.get(id);
    if (ready) return lease(ready);
    let waitingForRouter: number | null = null;
    for (;;) {
      if (signal.aborted) throw new GatewayError("cancelled", "the client left");
      if (isHeld(id)) {
        waitingForRouter = null;
        await changes.next(signal);
      } else if (!router.isReady()) {
        const missing = options.engineProblem();
        if (missing) throw missing;
        waitingForRouter ??= now();
        if (now() - waitingForRouter > options.routerWaitMs) {
          throw new GatewayError("router_unavailable", "the router is not running");
        }
        await changes.next(signal);
      } else {
        waitingForRouter = null;
        const instance = router.instances.get(id);
        if (instance) return lease(instance);
        const refusal = gate.refusal();
        if (refusal) throw refusal;
        await loader.load(id, signal);
      }
    }
  }

  function hold(models: readonly string[] | "all"): () => void {
    if (models === "all") drainingAll++;
    else for (const id of models) draining.set(id, (draining.get(id) ?? 0) + 1);
    let held = true;
    return () => {
      if (!held) return;
      held = false;
      if (models === "all") drainingAll--;
      else for (const id of models) countDown(draining, id);
      changes.poke();
    };
  }

  async function drain(models: readonly string[] | "all", signal: AbortSignal): Promise<() => void> {
    const letIn = hold(models);
    const deadline = now() + options.drainMs;
    const busy = (): boolean =>
      models === "all"
        ? leases.size > 0 || loader.isAnyLoading()
        : models.some((id) => leases.has(id) || loader.isLoading(id));
    while (busy() && now() < deadline && !signal.aborted) await changes.next(signal, Math.max(1, deadline - now()));
    for (const entry of open) if (models === "all" || models.includes(entry.id)) entry.isOverdue = true;
    return letIn;
  }

  return {
    acquire,
    drain,
    poke: changes.poke,
    peek: (id) => (isHeld(id) ? null : router.instances.get(id)),
    inFlight: () => leases,
    onUse: (listener) => void useListeners.push(listener),
    unloadIdle: async (instance) => {
      const { id } = instance;
      // By its address: two looks at the router's list at once make two objects of one process.
      if (router.instances.get(id)?.origin !== instance.origin) return "gone";
      if (leases.has(id) || loader.isLoading(id) || isHeld(id) || !router.isReady()) return "busy";
      const letIn = hold([id]);
      try {
        await loader.unload(id);
        return "unloaded";
      } finally {
        letIn();
      }
    },
    abandon: async (id) => {
      const letIn = hold([id]);
      try {
        await loader.unload(id);
      } finally {
        letIn();
      }
    },
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

interface OpenLease {
  readonly id: string;
  isOverdue: boolean;
}

function overdueError(id: string, drainMs: number): GatewayError {
  return new GatewayError(
    "upstream_failed",
    `${id} was reloaded or unloaded for a change: this answer took longer than the ${drainMs / 1000} s of --drain-timeout`,
  );
}

function countDown(counts: Map<string, number>, key: string): void {
  const left = (counts.get(key) ?? 1) - 1;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
}
