// Loads models one at a time and makes room for them. The gateway alone does so: the router takes a model whose answers go
// past it for idle, and would evict it in mid-answer.
import { GatewayError } from "../core/errors.ts";
import type { Router } from "../engines/router.ts";
import type { RouterModel } from "../plan/observed.ts";
import { type Changes, settledOrLeft } from "./changes.ts";
import type { BegunLoad, LoadGate } from "./load-gate.ts";

export interface Loader {
  /**
   * One try to have a model loaded; resolves when it is, or when the state of things has to be looked at anew.
   * Errors: `model_not_found`, `model_load_failed`.
   */
  load(id: string, signal: AbortSignal): Promise<void>;
  isLoading(id: string): boolean;
  isAnyLoading(): boolean;
  /** Unloads a model and waits until it is. */
  unload(id: string, signal?: AbortSignal): Promise<void>;
}

/** How long a model that was seen in the cache may take to appear on the router's list. */
const listedMs = 10_000;

export function createLoader(options: {
  readonly router: Router;
  readonly changes: Changes;
  readonly gate: Pick<LoadGate, "enter">;
  readonly modelsMax: () => number;
  readonly loadTimeoutMs: number;
  readonly now: () => number;
  /** Whether the cache still holds the model, as far as anybody knows. */
  readonly isCached: (id: string) => boolean;
  /** When (ms) the router last told of a model; 0 for never. */
  readonly progressAt: (id: string) => number;
  readonly warn: (message: string, fields: object) => void;
  /** A drain keeps the model from being loaded. */
  readonly isHeld: (id: string) => boolean;
  /** Keeps requests for a model waiting; call the result to let them in again. */
  readonly hold: (models: readonly string[]) => () => void;
  readonly isInUse: (id: string) => boolean;
  /** ms; 0 for never. */
  readonly lastUsed: (id: string) => number;
}): Loader {
  const { router, changes, now, isHeld } = options;
  const loads = new Map<string, Promise<void>>();
  /** How many wait for a model: a load that nobody waits for any more ends nobody's model. */
  const wanted = new Map<string, number>();
  let queue: Promise<unknown> = Promise.resolve();

  async function wanting(id: string, wait: () => Promise<void>): Promise<void> {
    wanted.set(id, (wanted.get(id) ?? 0) + 1);
    try {
      await wait();
    } finally {
      const left = (wanted.get(id) ?? 1) - 1;
      if (left > 0) wanted.set(id, left);
      else wanted.delete(id);
      changes.poke();
    }
  }

  /** One load per model however many ask, and one at a time, so that the count of loaded models holds. */
  function loadOnce(id: string): Promise<void> {
    const under = loads.get(id);
    if (under) return under;
    // Waited for outside the queue: a model that is never listed holds up no other.
    const work = untilListed(id).then(() => {
      const mine = queue.then(() => loadNow(id));
      queue = mine.catch(() => undefined);
      return mine;
    });
    loads.set(id, work);
    const forget = (): void => {
      loads.delete(id);
      changes.poke();
    };
    work.then(forget, forget);
    return work;
  }

  /** A model that has just arrived in the cache is listed after the router's next reload. */
  async function untilListed(id: string): Promise<void> {
    const deadline = now() + listedMs;
    for (;;) {
      await router.refresh();
      if (listed(id) || isHeld(id) || !router.isReady()) return;
      // It may be removed while somebody waits for it.
      if (now() > deadline || !options.isCached(id))
        throw new GatewayError("model_not_found", `the router does not list ${id}`);
      await changes.next();
    }
  }

  async function loadNow(id: string): Promise<void> {
    const deadline = now() + options.loadTimeoutMs;
    await makeRoom(id, deadline);
    // Whoever drains this model waits for its load: while it is held there is none.
    const isOpen = (): boolean =>
      wanted.has(id) && !isHeld(id) && router.isReady() && !router.instances.get(id) && listed(id) !== undefined;
    const begun = await options.gate.enter(id, isOpen);
    if (!begun) return;
    try {
      await untilLoaded(id, deadline, begun);
    } finally {
      begun.end();
    }
  }

  async function untilLoaded(id: string, deadline: number, begun: BegunLoad): Promise<void> {
    const startedAt = now();
    let ended: string | null = null;
    await router.client().load(id);
    for (;;) {
      await router.refresh();
      if (now() - Math.max(startedAt, options.progressAt(id)) > begun.stallMs) {
        ended = `it got on no further for ${begun.stallMs / 1000} s`;
        await endStalled(id, begun.stallMs);
      }
      if (router.instances.get(id) || !router.isReady()) return;
      const model = listed(id);
      if (!model) throw new GatewayError("model_not_found", `${id} went away while it was being loaded`);
      if (model.value === "unloaded") {
        if (!options.isCached(id))
          throw new GatewayError("model_not_found", `${id} was removed while it was being loaded`);
        if (await begun.isToBeRepeated()) return;
        const why = ended ?? (router.complaints() || "the engine ended while loading it");
        throw new GatewayError("model_load_failed", `${id} could not be loaded: ${why}${begun.described()}`);
      }
      if (now() > deadline) {
        throw new GatewayError("model_load_failed", `${id} was not loaded within ${options.loadTimeoutMs} ms`);
      }
      await changes.next();
    }
  }

  /** What it waits for does not come; the end of its process tells the loop above. */
  async function endStalled(id: string, stallMs: number): Promise<void> {
    options.warn("a load on RPC workers does not get on; it is ended", { model: id, silentMs: stallMs });
    await unload(id);
  }

  /** Unloads the least recently used idle model while there are too many; waits while all are in use. */
  async function makeRoom(id: string, deadline: number): Promise<void> {
    for (;;) {
      await router.refresh();
      const occupied = modelList().filter((model) => model.id !== id && occupying.has(model.value));
      if (occupied.length < options.modelsMax() || !wanted.has(id) || isHeld(id) || !router.isReady()) return;
      const idle = occupied.filter((model) => model.value !== "loading" && !options.isInUse(model.id));
      const [victim] = idle.toSorted((a, b) => options.lastUsed(a.id) - options.lastUsed(b.id));
      if (victim) await unloadIdle(victim.id);
      else await changes.next();
      if (now() > deadline) {
        throw new GatewayError(
          "model_load_failed",
          `no room for ${id}: ${occupied.length} models are loaded and in use`,
        );
      }
    }
  }

  async function unloadIdle(id: string): Promise<void> {
    const letIn = options.hold([id]);
    try {
      await unload(id);
    } finally {
      letIn();
    }
  }

  async function unload(id: string, signal?: AbortSignal): Promise<void> {
    const deadline = now() + options.loadTimeoutMs;
    await router.refresh();
    if ((listed(id)?.value ?? "unloaded") === "unloaded") return;
    await router.client().unload(id);
    for (;;) {
      await router.refresh();
      const value = listed(id)?.value ?? "unloaded";
      if (value === "unloaded" || !router.isReady() || now() > deadline) return;
      await changes.next(signal, 20);
      if (signal?.aborted) throw new GatewayError("cancelled", "the client left");
    }
  }

  function modelList(): readonly RouterModel[] {
    const { models } = router.snapshot();
    return models.state === "known" ? models.value : [];
  }

  function listed(id: string): RouterModel | undefined {
    return modelList().find((model) => model.id === id);
  }

  return {
    load: (id, signal) => wanting(id, () => settledOrLeft(loadOnce(id), signal)),
    isLoading: (id) => loads.has(id),
    isAnyLoading: () => loads.size > 0,
    unload,
  };
}

/** States in which a model takes one of the places. */
const occupying: ReadonlySet<string> = new Set(["loaded", "loading", "sleeping"]);
