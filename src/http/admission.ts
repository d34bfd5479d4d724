// Who may use which model when: leases for answers in flight, loading on demand, room for it, and draining.
// The gateway alone loads and unloads, because it alone knows what is in use.
import { GatewayError } from "../core/errors.ts";
import type { Instance } from "../engines/instances.ts";
import type { Router } from "../engines/router.ts";
import type { Drainer } from "../execute/router-actions.ts";
import type { RouterModel } from "../plan/observed.ts";

export interface Lease {
  readonly instance: Instance;
  /** ms that the request waited before it could begin. */
  readonly waitedMs: number;
  release(): void;
}

export interface Admission extends Drainer {
  /**
   * A loaded model, kept loaded until the lease is released. Waits for the router, for a drain, for room, and for the
   * load. Errors: `router_unavailable`, `model_not_found`, `model_load_failed`, `cancelled`.
   */
  acquire(id: string, signal: AbortSignal): Promise<Lease>;
  /** Unloads a model once its answers are through. */
  unload(id: string, signal: AbortSignal): Promise<void>;
  /** Answers in flight, by model. */
  inFlight(): ReadonlyMap<string, number>;
  /** An instance takes no connections: has it loaded anew, unless that has happened already. */
  replace(instance: Instance): Promise<void>;
  /** Something changed that a waiter may wait for. */
  poke(): void;
}

/** Events of the router are the rule; this is for the one that got lost. */
const lookAgainMs = 250;
const listedMs = 10_000;

export function createAdmission(options: {
  readonly router: Router;
  readonly modelsMax: () => number;
  readonly drainMs: number;
  readonly loadTimeoutMs: number;
  readonly routerWaitMs: number;
  /** Why there will be no router; null where there is one or will be. */
  readonly engineProblem: () => GatewayError | null;
  readonly now: () => number;
}): Admission {
  const { router, now } = options;
  const leases = new Map<string, number>();
  const lastUsed = new Map<string, number>();
  const draining = new Map<string, number>();
  let drainingAll = 0;
  const waiters = new Set<() => void>();
  const loads = new Map<string, Promise<void>>();
  const wanted = new Map<string, number>();
  let loadQueue: Promise<unknown> = Promise.resolve();

  function poke(): void {
    const woken = [...waiters];
    waiters.clear();
    for (const wake of woken) wake();
  }

  /** Resolves at the next change, or after a while. */
  function change(signal: AbortSignal, withinMs = lookAgainMs): Promise<void> {
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        waiters.delete(done);
        signal.removeEventListener("abort", done);
        resolve();
      };
      const timer = setTimeout(done, withinMs);
      waiters.add(done);
      signal.addEventListener("abort", done, { once: true });
    });
  }

  function stopIfGone(signal: AbortSignal): void {
    if (signal.aborted) throw new GatewayError("cancelled", "the client left");
  }

  function isHeld(id: string): boolean {
    return drainingAll > 0 || (draining.get(id) ?? 0) > 0;
  }

  function lease(instance: Instance, since: number): Lease {
    const letGo = instance.retain();
    leases.set(instance.id, (leases.get(instance.id) ?? 0) + 1);
    lastUsed.set(instance.id, now());
    let released = false;
    return {
      instance,
      waitedMs: now() - since,
      release: () => {
        if (released) return;
        released = true;
        letGo();
        lastUsed.set(instance.id, now());
        const left = (leases.get(instance.id) ?? 1) - 1;
        if (left > 0) leases.set(instance.id, left);
        else leases.delete(instance.id);
        poke();
      },
    };
  }

  async function acquire(id: string, signal: AbortSignal): Promise<Lease> {
    const since = now();
    // A loaded model answers by itself, whatever its router does.
    const ready = isHeld(id) ? null : router.instances.get(id);
    if (ready) return lease(ready, since);
    let waitingForRouter: number | null = null;
    for (;;) {
      stopIfGone(signal);
      if (isHeld(id)) {
        waitingForRouter = null;
        await change(signal);
      } else if (!router.isReady()) {
        const missing = options.engineProblem();
        if (missing) throw missing;
        waitingForRouter ??= now();
        if (now() - waitingForRouter > options.routerWaitMs)
          throw new GatewayError("router_unavailable", "the router is not running");
        await change(signal);
      } else {
        waitingForRouter = null;
        const instance = router.instances.get(id);
        if (instance) return lease(instance, since);
        await wanting(id, () => settledOr(loadOnce(id), signal));
      }
    }
  }

  /** Counts who waits for a model: a load that nobody waits for any more ends nobody's model. */
  async function wanting(id: string, wait: () => Promise<void>): Promise<void> {
    wanted.set(id, (wanted.get(id) ?? 0) + 1);
    try {
      await wait();
    } finally {
      const left = (wanted.get(id) ?? 1) - 1;
      if (left > 0) wanted.set(id, left);
      else wanted.delete(id);
      poke();
    }
  }

  /** A client that leaves stops waiting; the load goes on for whoever else wants it. */
  async function settledOr(work: Promise<void>, signal: AbortSignal): Promise<void> {
    const left = new AbortController();
    const gone = new Promise<void>((resolve) => {
      signal.addEventListener("abort", () => resolve(), { once: true, signal: left.signal });
    });
    try {
      await Promise.race([work, gone]);
    } finally {
      left.abort();
    }
  }

  /** One load per model however many ask, and one at a time, so that the count of loaded models holds. */
  function loadOnce(id: string): Promise<void> {
    const under = loads.get(id);
    if (under) return under;
    // Waited for outside the queue: a model that is never listed holds up no other.
    const work = untilListed(id).then(() => {
      const mine = loadQueue.then(() => load(id));
      loadQueue = mine.catch(() => undefined);
      return mine;
    });
    loads.set(id, work);
    const forget = (): void => {
      loads.delete(id);
      poke();
    };
    work.then(forget, forget);
    return work;
  }

  async function load(id: string): Promise<void> {
    const never = new AbortController().signal;
    const deadline = now() + options.loadTimeoutMs;
    // Whoever drains this model waits for its load: while it is held there is none.
    await makeRoom(id, deadline);
    if (!wanted.has(id) || isHeld(id) || !router.isReady() || router.instances.get(id) || !listed(id)) return;
    await router.client().load(id);
    for (;;) {
      await router.refresh();
      if (router.instances.get(id) || !router.isReady()) return;
      const model = listed(id);
      if (!model) throw new GatewayError("model_not_found", `${id} went away while it was being loaded`);
      if (model.value === "unloaded") {
        throw new GatewayError(
          "model_load_failed",
          `${id} could not be loaded: ${router.complaints() || "the engine ended while loading it"}`,
        );
      }
      if (now() > deadline)
        throw new GatewayError("model_load_failed", `${id} was not loaded within ${options.loadTimeoutMs} ms`);
      await change(never);
    }
  }

  /** A model that has just arrived in the cache is listed after the router's next reload. */
  async function untilListed(id: string): Promise<void> {
    const never = new AbortController().signal;
    const deadline = now() + listedMs;
    for (;;) {
      await router.refresh();
      if (listed(id) || isHeld(id) || !router.isReady()) return;
      if (now() > deadline) throw new GatewayError("model_not_found", `the router does not list ${id}`);
      await change(never);
    }
  }

  function modelList(): readonly RouterModel[] {
    const { models } = router.snapshot();
    return models.state === "known" ? models.value : [];
  }

  function listed(id: string): RouterModel | undefined {
    return modelList().find((model) => model.id === id);
  }

  /** Unloads the least recently used idle model while there are too many; waits while all are in use. */
  async function makeRoom(id: string, deadline: number): Promise<void> {
    const never = new AbortController().signal;
    for (;;) {
      await router.refresh();
      const occupied = modelList().filter(
        (model) => model.id !== id && ["loaded", "loading", "sleeping"].includes(model.value),
      );
      if (occupied.length < options.modelsMax() || !wanted.has(id) || isHeld(id) || !router.isReady()) return;
      const idle = occupied.filter((model) => model.value !== "loading" && !leases.has(model.id));
      const [victim] = idle.toSorted((a, b) => (lastUsed.get(a.id) ?? 0) - (lastUsed.get(b.id) ?? 0));
      if (victim) await unloadIdle(victim.id);
      else await change(never);
      if (now() > deadline)
        throw new GatewayError(
          "model_load_failed",
          `no room for ${id}: ${occupied.length} models are loaded and in use`,
        );
    }
  }

  async function unloadIdle(id: string): Promise<void> {
    const letIn = hold([id]);
    try {
      await endInstance(id, new AbortController().signal);
    } finally {
      letIn();
    }
  }

  async function endInstance(id: string, signal: AbortSignal): Promise<void> {
    const deadline = now() + options.loadTimeoutMs;
    await router.client().unload(id);
    for (;;) {
      await router.refresh();
      const value = listed(id)?.value ?? "unloaded";
      if (value === "unloaded" || !router.isReady() || now() > deadline) return;
      await change(signal, 20);
      stopIfGone(signal);
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
      else {
        for (const id of models) {
          const left = (draining.get(id) ?? 1) - 1;
          if (left > 0) draining.set(id, left);
          else draining.delete(id);
        }
      }
      poke();
    };
  }

  async function drain(models: readonly string[] | "all", signal: AbortSignal): Promise<() => void> {
    const letIn = hold(models);
    const deadline = now() + options.drainMs;
    const busy = (): boolean =>
      models === "all" ? leases.size + loads.size > 0 : models.some((id) => leases.has(id) || loads.has(id));
    while (busy() && now() < deadline && !signal.aborted) await change(signal, Math.max(1, deadline - now()));
    return letIn;
  }

  return {
    acquire,
    drain,
    poke,
    replace: async (instance) => {
      await router.refresh();
      // A process that lost its listener but lives stays "loaded" in the router's eyes for ever; unloading cures it.
      if (router.instances.get(instance.id) === instance && router.isReady())
        await endInstance(instance.id, new AbortController().signal);
    },
    inFlight: () => leases,
    unload: async (id, signal) => {
      const letIn = await drain([id], signal);
      try {
        if (listed(id)?.value !== "unloaded") await endInstance(id, signal);
      } finally {
        letIn();
      }
    },
  };
}
