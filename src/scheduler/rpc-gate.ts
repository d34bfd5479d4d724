// In RPC mode: when a model may be loaded, and whether a load that failed is worth another try. A worker serves one client at
// a time, so a load onto one that hangs would wait for ever.
import { GatewayError } from "../core/errors.ts";
import type { DesiredState } from "../desired/document/document.ts";
import type { Router } from "../engines/llama/router.ts";
import { findListed } from "../plan/find-model.ts";
import { endpointsOf, presetEndpoints, type WantedWorkers, wantedWorkers } from "../plan/workers.ts";
import type { Workers } from "../rpc/workers.ts";
import type { WorkersVerdict } from "./state/events.ts";

export type RpcGate = ReturnType<typeof createRpcGate>;

const ready: WorkersVerdict = { kind: "ready", stallMs: Number.POSITIVE_INFINITY };

export function createRpcGate(options: {
  readonly desired: () => DesiredState;
  readonly router: Pick<Router, "models" | "snapshot" | "instances">;
  readonly workers: Workers;
  readonly stallMs: number;
}) {
  const { router, workers } = options;
  /** The workers that the load in progress is on. */
  let reserved: readonly string[] | null = null;

  function wanted(): WantedWorkers {
    return wantedWorkers(options.desired().document, workers.snapshot());
  }

  function inForce(): readonly string[] {
    return presetEndpoints(router.snapshot().loadedPreset ?? "");
  }

  function registered(id: string): readonly string[] {
    const model = findListed(router.models(), id);
    return model ? endpointsOf(model) : [];
  }

  /** Why no model can be loaded; null: they can. `too_few_workers` */
  function refusal(): GatewayError | null {
    const { mode, minWorkers } = options.desired().document.rpc;
    if (mode === "single") return null;
    const { up, unprobed } = wanted();
    if (up + unprobed >= minWorkers) return null;
    return new GatewayError(
      "too_few_workers",
      `${up} of the RPC workers can be used, and the document asks for at least ${minWorkers}`,
    );
  }

  function described(endpoints: readonly string[]): string {
    const seen = new Map(workers.snapshot().map((worker) => [worker.endpoint, worker]));
    const list = endpoints.map((endpoint) => `${endpoint} (version ${seen.get(endpoint)?.version ?? "unknown"})`);
    return `; RPC workers: ${list.join(", ")}`;
  }

  /** The router is about to be given other workers than it has: a load would be ended by that. */
  function isAboutToChange(): boolean {
    const { endpoints, unprobed } = wanted();
    return unprobed > 0 || endpoints.join() !== inForce().join();
  }

  async function reserve(id: string, endpoints: readonly string[], isLate: boolean): Promise<WorkersVerdict> {
    if (await workers.enter(endpoints)) {
      reserved = endpoints;
      return { kind: "ready", stallMs: options.stallMs };
    }
    if (!isLate) return { kind: "wait" };
    const message = `a worker is lost that ${id} is still registered with`;
    return { kind: "refused", error: new GatewayError("model_load_failed", message) };
  }

  return {
    refusal,
    /** `isLate`: the preset has had its time to follow the workers. `ready` reserves the workers until `release`. */
    check: (id: string, isLate: boolean): WorkersVerdict | Promise<WorkersVerdict> => {
      const endpoints = registered(id);
      if (options.desired().document.rpc.mode === "single" && endpoints.length === 0) return ready;
      const error = refusal();
      if (error) return { kind: "refused", error };
      // A model that outlived its router still has the workers.
      if (router.instances.detachedUsers() > 0 || (!isLate && isAboutToChange())) return { kind: "wait" };
      return endpoints.length === 0 ? ready : reserve(id, endpoints, isLate);
    },
    /** Of a load that ended early: whether a worker is lost, so that the same load may work without it, and on which it was. */
    explain: async () => {
      if (!reserved) return { isWorkerLost: false, workers: "" };
      const workersText = described(reserved);
      return { isWorkerLost: await workers.hasLost(reserved), workers: workersText };
    },
    release: (): void => {
      if (reserved) workers.leave();
      reserved = null;
    },
  };
}
