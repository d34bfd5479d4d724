// In RPC mode: when a model may be loaded, and whether a load that failed is worth another try. A worker serves one client at
// a time, so a load onto one that hangs would wait for ever.
import { GatewayError } from "../core/errors.ts";
import type { DesiredState } from "../desired/document/document.ts";
import type { Router } from "../engines/llama/router.ts";
import { endpointsOf, presetEndpoints, type WantedWorkers, wantedWorkers } from "../plan/workers.ts";
import type { Pass } from "../reconcile/loop.ts";
import type { Workers } from "../rpc/workers.ts";
import type { Changes } from "./change-signal.ts";

export interface BegunLoad {
  /** ms without a sign of progress after which the load counts as hanging. */
  readonly stallMs: number;
  /** Of a load that failed: a worker is lost, so the same may work without it. */
  isToBeRepeated(): Promise<boolean>;
  /** With which workers, for the message where it failed all the same; empty where there are none. */
  described(): string;
  /** To be called when the load is through, whichever way. */
  end(): void;
}

export interface LoadGate {
  /**
   * Why no model can be loaded just now; null where one can. `too_few_workers`.
   */
  refusal(): GatewayError | null;
  /** Waits until a model may be loaded; null when the state of things has to be looked at anew. Errors: as {@link refusal}. */
  enter(id: string, isWanted: () => boolean): Promise<BegunLoad | null>;
}

/** How long to wait for the preset to follow the workers: then the load is tried with what the router has. */
const settleMs = 10_000;

/** Held, but not for somebody's hand. */
const isSoonDone: ReadonlySet<string> = new Set(["waiting", "backoff", "settling"]);

const unhindered: BegunLoad = {
  stallMs: Number.POSITIVE_INFINITY,
  isToBeRepeated: async () => false,
  described: () => "",
  end: () => undefined,
};

export function createLoadGate(options: {
  readonly desired: () => DesiredState;
  readonly router: Pick<Router, "snapshot" | "instances">;
  readonly workers: Workers;
  readonly changes: Changes;
  readonly pass: () => Pass | null;
  readonly isUnderWay: (key: string) => boolean;
  readonly stallMs: number;
  readonly now: () => number;
}): LoadGate {
  const { router, workers, changes, now } = options;

  function wanted(): WantedWorkers {
    return wantedWorkers(options.desired().document, workers.snapshot(), inForce());
  }

  function inForce(): readonly string[] {
    return presetEndpoints(router.snapshot().loadedPreset ?? "");
  }

  function registered(id: string): readonly string[] {
    const { models } = router.snapshot();
    const model = models.state === "known" ? models.value.find((entry) => entry.id === id) : undefined;
    return model ? endpointsOf(model) : [];
  }

  function refusal(): GatewayError | null {
    const { mode, minWorkers } = options.desired().document.rpc;
    const { up, unprobed } = wanted();
    if (mode === "single" || up + unprobed >= minWorkers) return null;
    return new GatewayError(
      "too_few_workers",
      `${up} of the RPC workers can be used, and the document asks for at least ${minWorkers}`,
    );
  }

  function described(endpoints: readonly string[]): string {
    const seen = new Map(workers.snapshot().workers.map((worker) => [worker.endpoint, worker]));
    const list = endpoints.map((endpoint) => `${endpoint} (version ${seen.get(endpoint)?.version ?? "unknown"})`);
    return `; RPC workers: ${list.join(", ")}`;
  }

  /** The router is about to be given other workers than it has. */
  function isAboutToChange(): boolean {
    const { endpoints, unprobed } = wanted();
    if (unprobed > 0) return true;
    const current = inForce();
    if (current.length === endpoints.length && current.every((endpoint, at) => endpoint === endpoints[at]))
      return false;
    const pass = options.pass();
    const { generation } = options.desired();
    if (pass?.desired.generation !== generation || pass.observed.workers.state === "unknown") return true;
    if (pass.observed.workers.value.epoch !== workers.snapshot().epoch) return true;
    const willBeDone = [
      ...pass.plan.actions,
      ...pass.plan.held.filter(({ why }) => isSoonDone.has(why)).map(({ action }) => action),
    ];
    return ["preset", "router"].some(
      (key) => options.isUnderWay(key) || willBeDone.some((action) => action.key === key),
    );
  }

  return {
    refusal,
    enter: async (id, isWanted) => {
      const deadline = now() + settleMs;
      while (isWanted()) {
        if (options.desired().document.rpc.mode === "single" && registered(id).length === 0) return unhindered;
        const problem = refusal();
        if (problem) throw problem;
        // A model that outlived its router still has the workers.
        const mayGoOn = router.instances.detachedUsers() === 0 && (!isAboutToChange() || now() > deadline);
        const endpoints = registered(id);
        if (mayGoOn && endpoints.length === 0) return unhindered;
        if (mayGoOn && (await workers.enter(endpoints))) {
          if (isWanted()) {
            return {
              stallMs: options.stallMs,
              isToBeRepeated: () => workers.hasLost(endpoints),
              described: () => described(endpoints),
              end: workers.leave,
            };
          }
          workers.leave();
          return null;
        }
        if (mayGoOn && now() > deadline)
          throw new GatewayError("model_load_failed", `a worker is lost that ${id} is still registered with`);
        await changes.next();
      }
      return null;
    },
  };
}
