// The RPC workers of the document: one watch for each, and no probe of a worker while a model is loaded onto it. The planner
// decides about the preset.
import { foldWorker } from "../core/worker-address.ts";
import type { Desired } from "../desired/document/document.ts";
import type { RouterModel, RouterSnapshot, WorkerSnapshot, WorkersSnapshot } from "../plan/observed.ts";
import type { VerdictRules } from "../plan/worker-verdict.ts";
import { endpointsOf } from "../plan/workers.ts";
import { createResolver } from "./worker-target.ts";
import { type Use, type WorkerWatch, watchWorker } from "./worker-watch.ts";

export interface Workers {
  /** The current state; watches workers that are new in the document, and stops watching removed ones. */
  snapshot(): WorkersSnapshot;
  /** The model that uses a worker; null where none does. */
  usedBy(endpoint: string | null): string | null;
  /** The router's list may have changed. */
  review(): void;
  /** The last response in flight has ended: workers that came back meanwhile may be used. */
  settled(): void;
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

export function createWorkers(options: {
  readonly rpc: () => Desired["rpc"];
  readonly router: () => Pick<RouterSnapshot, "phase" | "models">;
  /** Answers in flight on models that outlived their router. */
  readonly detachedUsers: () => number;
  /** Whether any answer is in flight. */
  readonly isAnswering: () => boolean;
  readonly intervalMs: number;
  readonly rules: VerdictRules;
  readonly now: () => number;
  readonly onChange: () => void;
  /** A worker went while these models used it. */
  readonly onLost: (models: readonly string[], message: string) => void;
}): Workers {
  const watches = new Map<string, WorkerWatch>();
  /** Addresses by the endpoint that each of them means: two spellings of one worker are one. */
  const claims = new Map<string, string>();
  const resolve = createResolver();
  /** The part of the document that was applied last. */
  let roster = "";
  let loads = 0;
  let stopped = false;

  function users(endpoint: string): RouterModel[] {
    const { models } = options.router();
    if (models.state === "unknown") return [];
    return models.value.filter((model) => holding.has(model.value) && endpointsOf(model).includes(endpoint));
  }

  function useOf(endpoint: string): Use {
    const { phase, models } = options.router();
    if (loads > 0 || options.detachedUsers() > 0) return "closed";
    if (models.state === "unknown") return phase === "ready" || phase === "stopping" ? "closed" : "idle";
    const using = users(endpoint);
    if (using.length === 0) return "idle";
    return using.every((model) => model.value === "loaded") ? "loaded" : "closed";
  }

  function claim(endpoint: string, address: string): string | null {
    const other = claims.get(endpoint);
    if (other === address) return null;
    release(address);
    if (other === undefined) claims.set(endpoint, address);
    return other ?? null;
  }

  function release(address: string): void {
    for (const [endpoint, owner] of claims) if (owner === address) claims.delete(endpoint);
  }

  function follow(): void {
    if (stopped) return;
    const rpc = options.rpc();
    const text = JSON.stringify(rpc);
    if (text === roster) return;
    roster = text;
    const named = new Map(rpc.workers.map((address) => [foldWorker(address), address]));
    for (const [key, watch] of watches) {
      if (named.get(key) === watch.snapshot().address) {
        watch.accept();
        continue;
      }
      watch.stop();
      watches.delete(key);
      release(watch.snapshot().address);
    }
    for (const [key, address] of named) {
      if (watches.has(key)) continue;
      watches.set(
        key,
        watchWorker(address, {
          resolve,
          allowPublic: () => options.rpc().allowPublicWorkers,
          use: useOf,
          claim: (endpoint) => claim(endpoint, address),
          intervalMs: options.intervalMs,
          rules: options.rules,
          now: options.now,
          onChange: options.onChange,
          onLost: (endpoint, message) =>
            options.onLost(
              users(endpoint).map((model) => model.id),
              message,
            ),
        }),
      );
    }
    // One that was a second name of another may be the only one now.
    review();
  }

  function list(): WorkerSnapshot[] {
    return [...watches.values()].map((watch) => watch.snapshot());
  }

  function watchesOf(endpoints: readonly string[]): WorkerWatch[] {
    return [...watches.values()].filter((watch) => endpoints.includes(watch.snapshot().endpoint ?? ""));
  }

  async function allAnswer(endpoints: readonly string[]): Promise<boolean> {
    const answers = await Promise.all(watchesOf(endpoints).map((watch) => watch.check()));
    return answers.every((answer) => answer);
  }

  function review(): void {
    for (const watch of watches.values()) watch.review();
  }

  function leave(): void {
    loads--;
    review();
  }

  return {
    snapshot: () => {
      follow();
      return { workers: list(), answering: options.isAnswering() };
    },
    settled: () => {
      if (options.isAnswering() || !list().some(({ returned }) => returned)) return;
      options.onChange();
    },
    usedBy: (endpoint) => (endpoint === null ? null : (users(endpoint)[0]?.id ?? null)),
    review,
    enter: async (endpoints) => {
      loads++;
      await Promise.all([...watches.values()].map((watch) => watch.clear()));
      if (await allAnswer(endpoints)) return true;
      leave();
      return false;
    },
    leave,
    hasLost: async (endpoints) => !(await allAnswer(endpoints)),
    stop: () => {
      stopped = true;
      for (const watch of watches.values()) watch.stop();
    },
  };
}

/** States in which a model's process is connected to its workers. */
const holding: ReadonlySet<string> = new Set(["loaded", "loading", "sleeping"]);
