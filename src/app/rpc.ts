// The parts of RPC mode, wired: the watch over its workers, the gate before a load, the workers' status.
import { foldWorker } from "../core/worker-address.ts";
import type { Desired } from "../desired/document/document.ts";
import type { DesiredStore } from "../desired/store.ts";
import type { Router } from "../engines/llama/router.ts";
import { verdictRules } from "../plan/worker-verdict.ts";
import { endpointsOf, workersByAddress } from "../plan/workers.ts";
import { createWorkers, type Workers } from "../rpc/workers.ts";
import { createRpcGate, type RpcGate } from "../scheduler/rpc-gate.ts";
import type { Settings } from "../settings/settings.ts";
import type { Condition } from "../status/finding.ts";
import type { WorkerStatus } from "../status/report.ts";
import { rpcWarning } from "../status/worker-conditions.ts";
import type { Events } from "./events.ts";
import type { Warn } from "./warn.ts";

export interface Rpc {
  readonly workers: Workers;
  readonly gate: RpcGate;
  /** A worker serves one model at a time: a second one would wait for it for ever. Also until single mode is in force. */
  takesOneModel(): boolean;
  statuses(conditions: ReadonlyMap<string, readonly Condition[]>): WorkerStatus[];
}

export function createRpc(options: {
  readonly settings: Pick<Settings, "workerIntervalMs" | "workerStableMs" | "workerStallMs">;
  readonly events: Events;
  readonly store: Pick<DesiredStore, "current">;
  readonly router: Router;
  readonly now: () => number;
  readonly warn: Warn;
}): Rpc {
  const { settings, events, store, router, now, warn } = options;
  const inUse = new Set<string>();
  events.on("modelInUse", ({ id }) => inUse.add(id));
  events.on("modelIdle", ({ id }) => inUse.delete(id));
  const rpc = (): Desired["rpc"] => store.current().document.rpc;
  const workers = createWorkers({
    rpc,
    router: router.snapshot,
    detachedUsers: router.instances.detachedUsers,
    isAnswering: () => inUse.size > 0,
    intervalMs: settings.workerIntervalMs,
    rules: verdictRules(settings.workerStableMs),
    now,
    onChange: () => events.emit({ type: "changed", what: "workers" }),
    onLost: (models, message) => {
      warn("RPC worker lost", { models, message });
      events.emit({ type: "workersLost", models, message });
    },
  });
  const gate = createRpcGate({
    desired: store.current,
    router,
    workers,
    stallMs: settings.workerStallMs,
  });
  events.on("modelIdle", workers.settled);
  events.on("routerChanged", workers.review);
  let isWarned = false;
  events.on("passed", ({ pass }) => {
    const { mode, workers: named } = pass.desired.document.rpc;
    // Once each time that RPC mode comes into force.
    if (mode === "rpc" && !isWarned) warn(rpcWarning, { workers: named });
    isWarned = mode === "rpc";
  });

  return {
    workers,
    gate,
    takesOneModel: () => {
      const { models } = router.snapshot();
      if (rpc().mode === "rpc") return true;
      return models.state === "known" && models.value.some((model) => endpointsOf(model).length > 0);
    },
    statuses: (conditions) => {
      const seen = workersByAddress(workers.snapshot().workers);
      return rpc().workers.map((address) => {
        const worker = seen.get(foldWorker(address));
        const { endpoint = null, latencyMs = null, version = null, devices = null } = worker ?? {};
        return { address, endpoint, latencyMs, version, devices, conditions: conditions.get(address) ?? [] };
      });
    },
  };
}
