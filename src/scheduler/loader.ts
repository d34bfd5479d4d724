// Loads models one at a time and makes room for them. The gateway alone does so: the router takes a model whose answers go
// past it for idle, and would evict it in mid-answer.
import { GatewayError, toGatewayError } from "../core/errors.ts";
import type { Router } from "../engines/llama/router.ts";
import type { RouterModel } from "../plan/observed.ts";
import type { Changes } from "./change-signal.ts";
import type { CoolDowns } from "./load-backoff.ts";
import { type Placed, roomFor, type Turn, turnAfter } from "./placement.ts";
import type { BegunLoad, LoadGate } from "./rpc-gate.ts";
import type { WaitReason } from "./tickets.ts";

export interface Loader {
  /** Somebody waits for a model that is not loaded: sees to it that one after the other is. */
  work(): void;
  /** What those wait for who wait for a model that is not loaded. */
  reasonFor(id: string): Extract<WaitReason, "load" | "room" | "workers">;
  isLoading(id: string): boolean;
  isAnyLoading(): boolean;
  /** Takes no new requests, as another model waits for its place. */
  yields(id: string): boolean;
  /** Unloads a model and waits until it is. */
  unload(id: string, signal?: AbortSignal): Promise<void>;
}

export interface LoaderOptions {
  readonly router: Router;
  readonly changes: Changes;
  readonly gate: Pick<LoadGate, "enter">;
  readonly coolDowns: Pick<CoolDowns, "failed" | "succeeded" | "failing">;
  readonly modelsMax: () => number;
  readonly loadTimeoutMs: number;
  readonly now: () => number;
  /** Whether the cache still holds the model, as far as anybody knows. */
  readonly isCached: (id: string) => boolean;
  /** Whether the document keeps it loaded. */
  readonly isPinned: (id: string) => boolean;
  /** When (ms) the router last told of a model; 0 for never. */
  readonly progressAt: (id: string) => number;
  readonly warn: (message: string, fields: object) => void;
  /** Models that somebody waits for, in the order in which they are to be loaded. */
  readonly wanted: () => readonly string[];
  /** How many wait for it. */
  readonly waiting: (id: string) => number;
  readonly inFlight: (id: string) => number;
  /** ms; 0 for never. */
  readonly lastUsed: (id: string) => number;
  /** A drain keeps the model from being loaded. */
  readonly isHeld: (id: string) => boolean;
  /** Keeps requests for a model waiting; call the result to let them in again. */
  readonly hold: (models: readonly string[]) => () => void;
  /** It could not be loaded: whoever waits for it is told. */
  readonly onFailed: (id: string, error: GatewayError) => void;
}

/** So many calls that break off in a row are no router's end that is about to be known; ms between them. */
const mostBrokenOff = 8;
const brokenOffMs = 250;

export function createLoader(options: LoaderOptions): Loader {
  const { router, changes, now } = options;
  const turns = new Map<string, Turn>();
  let current: { readonly id: string; phase: "room" | "workers" | "load" } | null = null;
  let yielding: string | null = null;
  let isWorking = false;
  /** Models whose last load ended early and is made again. */
  const endedOnce = new Set<string>();
  /** Calls in a row that the router broke off. */
  let brokenOff = 0;

  /** Whoever drains a model waits for its load: while it is held there is none. */
  function isOpen(id: string): boolean {
    return options.waiting(id) > 0 && !options.isHeld(id) && router.isReady() && !router.instances.get(id);
  }

  async function loadWanted(): Promise<void> {
    isWorking = true;
    try {
      while (options.wanted().some(isOpen)) {
        await router.refresh();
        const open = options.wanted().filter(isOpen);
        const id = open.find((each) => listed(each) !== undefined);
        if (id !== undefined) await load(id);
        // A model that has just arrived in the cache is listed after the router's next reload.
        else if (open.length > 0) await changes.next();
      }
    } finally {
      isWorking = false;
    }
  }

  async function load(id: string): Promise<void> {
    current = { id, phase: "room" };
    try {
      if (!(await makeRoom(id))) return;
      current.phase = "workers";
      const begun = await options.gate.enter(id, () => isOpen(id) && listed(id) !== undefined);
      if (!begun) return;
      current.phase = "load";
      try {
        await untilLoaded(id, begun);
      } finally {
        begun.end();
      }
    } catch (error) {
      const failed = toGatewayError(error);
      if (failed.code !== "router_unavailable") options.onFailed(id, failed);
      else if (router.isReady()) await endOrWait(id, failed);
      // Of a router that has gone: whoever waits goes on waiting for the next one.
    } finally {
      current = null;
      changes.poke();
    }
  }

  /**
   * A router that was killed closes its connections a moment before its end is known: two of thirty-eight requests were
   * refused for it. One that answered that it does not want to, or breaks off again and again, is no such case.
   */
  async function endOrWait(id: string, failed: GatewayError): Promise<void> {
    const hasAnswered = failed.cause === undefined;
    if (hasAnswered || ++brokenOff > mostBrokenOff) return options.onFailed(id, failed);
    await changes.next(undefined, brokenOffMs);
  }

  async function untilLoaded(id: string, begun: BegunLoad): Promise<void> {
    const startedAt = now();
    let ended: string | null = null;
    await router.client().load(id);
    brokenOff = 0;
    for (;;) {
      await router.refresh();
      if (now() - Math.max(startedAt, options.progressAt(id)) > begun.stallMs) {
        ended = `it got on no further for ${begun.stallMs / 1000} s`;
        await endStalled(id, begun.stallMs);
      }
      if (router.instances.get(id)) {
        turns.set(id, turnAfter(now() - startedAt, now()));
        endedOnce.delete(id);
        return options.coolDowns.succeeded(id);
      }
      if (!router.isReady()) return;
      const model = listed(id);
      if (!model) throw new GatewayError("model_not_found", `${id} went away while it was being loaded`);
      if (model.value === "unloaded") {
        if (!options.isCached(id))
          throw new GatewayError("model_not_found", `${id} was removed while it was being loaded`);
        // Somebody unloads it: that is no failing of the model's.
        if (options.isHeld(id) || (await begun.isToBeRepeated())) return;
        if (ended === null && isFirstEnd(id)) return;
        const why = ended ?? (router.complaints() || "the engine ended while loading it");
        throw failure(id, `${why}${begun.described()}`);
      }
      if (now() - startedAt > options.loadTimeoutMs) {
        await unload(id);
        throw failure(id, `it was not loaded within ${options.loadTimeoutMs / 1000} s`);
      }
      await changes.next();
    }
  }

  /**
   * A process may end for what has nothing to do with its model: somebody kills it, the machine runs out of memory for a
   * moment. So it is loaded once more before those who wait are told; one that is known to fail is not.
   */
  function isFirstEnd(id: string): boolean {
    if (options.coolDowns.failing().has(id) || endedOnce.delete(id)) return false;
    endedOnce.add(id);
    return true;
  }

  function failure(id: string, why: string): GatewayError {
    options.coolDowns.failed(id, why);
    return new GatewayError("model_load_failed", `${id} could not be loaded: ${why}`);
  }

  /** What it waits for does not come; the end of its process tells the loop above. */
  async function endStalled(id: string, stallMs: number): Promise<void> {
    options.warn("a load on RPC workers does not get on; it is ended", { model: id, silentMs: stallMs });
    await unload(id);
  }

  /** False: nobody waits for the model any more, or it must not be loaded just now. Errors: `busy`. */
  async function makeRoom(id: string): Promise<boolean> {
    try {
      for (;;) {
        await router.refresh();
        if (!isOpen(id)) return false;
        const room = roomFor(placedBeside(id), options.modelsMax(), yielding, now());
        if (room.kind === "free") return true;
        if (room.kind === "pinned") throw pinnedError(id, options.modelsMax());
        if (room.kind === "evict") {
          await evict(room.id);
          continue;
        }
        yielding = room.yields;
        await changes.next(undefined, Math.min(250, Math.max(1, room.until - now())));
      }
    } finally {
      yielding = null;
    }
  }

  function placedBeside(id: string): Placed[] {
    return modelList()
      .filter((model) => model.id !== id && occupying.has(model.value))
      .map((model) => ({
        id: model.id,
        isLoading: model.value === "loading",
        pinned: options.isPinned(model.id),
        inFlight: options.inFlight(model.id),
        waiting: options.isHeld(model.id) ? 0 : options.waiting(model.id),
        lastUsed: options.lastUsed(model.id),
        turn: turns.get(model.id) ?? null,
      }));
  }

  async function evict(id: string): Promise<void> {
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
    turns.delete(id);
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
    work: () => {
      if (!isWorking)
        loadWanted().catch((error: unknown) => options.warn("loading models failed", { error: String(error) }));
    },
    reasonFor: (id) => {
      if (current === null || current.id === id) return current?.phase ?? "load";
      return current.phase === "room" ? "room" : "load";
    },
    isLoading: (id) => current !== null && current.id === id && current.phase !== "room",
    isAnyLoading: () => current !== null && current.phase !== "room",
    yields: (id) => id === yielding,
    unload,
  };
}

function pinnedError(id: string, most: number): GatewayError {
  return new GatewayError(
    "busy",
    `no room for ${id}: each of the ${most} places (--models-max) is taken by a model that the document pins`,
    { retryAfterMs: 30_000 },
  );
}

/** States in which a model takes one of the places. */
const occupying: ReadonlySet<string> = new Set(["loaded", "loading", "sleeping"]);
