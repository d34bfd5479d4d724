// The RPC workers of the document: one watch for each, and no probe of a worker while a model is loaded onto it. The planner
// decides about the preset.
import { foldWorker } from "../core/worker-address.ts";
import type { Desired } from "../desired/document/document.ts";
import { placedValues, type RouterModel, type RouterSnapshot, type WorkerSnapshot } from "../plan/observed.ts";
import { endpointsOf } from "../plan/workers.ts";
import { createResolver } from "./worker-target.ts";
import { type Use, type WorkerWatch, watchWorker } from "./worker-watch.ts";

export interface Workers {
  /** The current state; watches workers that are new in the document, and stops watching removed ones. */
  snapshot(): readonly WorkerSnapshot[];
  /** The model that uses a worker; null where none does. */
  usedBy(endpoint: string | null): string | null;
  /** The router's list may have changed. */
  review(): void;
  /**
   * Before a model is loaded onto these endpoints: waits for probes in flight, holds new ones, and probes each endpoint.
   * True: load, and call {@link leave} afterwards. False: one of them is lost, observe again.
   */
  enter(endpoints: readonly string[]): Promise<boolean>;
  leave(): void;
  /** After a load that failed: whether one of the endpoints is lost. To be called between {@link enter} and {@link leave}. */
  hasLost(endpoints: readonly string[]): Promise<boolean>;
  stop(): void;
}

export interface WorkersOptions {
  readonly rpc: () => Desired["rpc"];
  readonly router: () => Pick<RouterSnapshot, "phase" | "models">;
  /** Answers in flight on models that outlived their router. */
  readonly detachedUsers: () => number;
  readonly intervalMs: number;
  /** ms that a lost worker has to answer before it is used again. */
  readonly stableMs: number;
  readonly now: () => number;
  readonly onChange: () => void;
  /** A worker went while these models used it. */
  readonly onLost: (models: readonly string[], message: string) => void;
}

export function createWorkers(options: WorkersOptions): Workers {
  const watches = new Map<string, WorkerWatch>();
  const resolve = createResolver();
  /** The part of the document that was applied last. */
  let roster = "";
  let loads = 0;
  let stopped = false;

  function useOf(endpoint: string): Use {
    const { phase, models } = options.router();
    if (loads > 0 || options.detachedUsers() > 0) return "closed";
    if (models.state === "unknown") return phase === "ready" || phase === "stopping" ? "closed" : "idle";
    const using = usersOf(options.router(), endpoint);
    if (using.length === 0) return "idle";
    return using.every((model) => model.value === "loaded") ? "loaded" : "closed";
  }

  function watch(address: string): WorkerWatch {
    return watchWorker(address, {
      ...options,
      resolve,
      allowPublic: () => options.rpc().allowPublicWorkers,
      use: useOf,
      onLost: (endpoint, message) => {
        const models = usersOf(options.router(), endpoint).map((model) => model.id);
        options.onLost(models, message);
      },
    });
  }

  function follow(): void {
    if (stopped) return;
    const rpc = options.rpc();
    const text = JSON.stringify(rpc);
    if (text === roster) return;
    roster = text;
    const named = new Map(rpc.workers.map((address) => [foldWorker(address), address]));
    for (const [key, known] of watches) {
      if (named.get(key) === known.snapshot().address) continue;
      known.stop();
      watches.delete(key);
    }
    for (const [key, address] of named) if (!watches.has(key)) watches.set(key, watch(address));
  }

  async function allAnswer(endpoints: readonly string[]): Promise<boolean> {
    const used = [...watches.values()].filter((known) => endpoints.includes(known.snapshot().endpoint ?? ""));
    return (await Promise.all(used.map((known) => known.check()))).every((answers) => answers);
  }

  function review(): void {
    for (const known of watches.values()) known.review();
  }

  function leave(): void {
    loads--;
    review();
  }

  return {
    snapshot: () => {
      follow();
      return [...watches.values()].map((known) => known.snapshot());
    },
    usedBy: (endpoint) => (endpoint === null ? null : (usersOf(options.router(), endpoint)[0]?.id ?? null)),
    review,
    enter: async (endpoints) => {
      loads++;
      await Promise.all([...watches.values()].map((known) => known.clear()));
      if (await allAnswer(endpoints)) return true;
      leave();
      return false;
    },
    leave,
    hasLost: async (endpoints) => !(await allAnswer(endpoints)),
    stop: () => {
      stopped = true;
      for (const known of watches.values()) known.stop();
    },
  };
}

function usersOf({ models }: Pick<RouterSnapshot, "models">, endpoint: string): RouterModel[] {
  if (models.state === "unknown") return [];
  return models.value.filter((model) => placedValues.has(model.value) && endpointsOf(model).includes(endpoint));
}
