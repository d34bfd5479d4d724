// RPC mode, wired: the watch over its workers, the gate before a load, the workers' status.

import { steadyNow } from "../core/steady.ts";
import { foldWorker } from "../core/worker-address.ts";
import type { Desired } from "../desired/document/document.ts";
import type { DesiredStore } from "../desired/store.ts";
import type { Router } from "../engines/llama/router.ts";
import { endpointsOf, workersByAddress } from "../plan/workers.ts";
import { createWorkers } from "../rpc/workers.ts";
import { createRpcGate } from "../scheduler/rpc-gate.ts";
import type { Condition } from "../status/finding.ts";
import type { WorkerStatus } from "../status/report.ts";
import { rpcWarning } from "../status/worker-conditions.ts";
import type { Base } from "./events.ts";

export type Rpc = ReturnType<typeof createRpc>;

export function createRpc(options: Base & { readonly store: DesiredStore; readonly router: Router }) {
  const { settings, warn, events, store, router } = options;
  const rpc = (): Desired["rpc"] => store.current().document.rpc;
  const workers = createWorkers({
    rpc,
    router: router.snapshot,
    detachedUsers: router.instances.detachedUsers,
    intervalMs: settings.workerIntervalMs,
    stableMs: settings.workerStableMs,
    now: steadyNow,
    onChange: () => events.emit("changed"),
    onLost: (models, message) => {
      warn("RPC worker lost", { models, message });
      events.emit("workersLost", models, message);
    },
  });
  const gate = createRpcGate({
    desired: store.current,
    router,
    workers,
    stallMs: settings.workerStallMs,
  });
  events.on("routerChanged", workers.review);
  let isWarned = false;
  events.on("passed", ({ desired }) => {
    const { mode, workers: named } = desired.document.rpc;
    // Once each time that RPC mode comes into force.
    if (mode === "rpc" && !isWarned) warn(rpcWarning, { workers: named });
    isWarned = mode === "rpc";
  });

  return {
    workers,
    gate,
    /** A worker serves one model at a time: a second one would wait for it for ever. Also until single mode is in force. */
    takesOneModel: () => {
      const models = router.models();
      if (rpc().mode === "rpc") return true;
      return models.state === "known" && models.value.some((model) => endpointsOf(model).length > 0);
    },
    statuses: (conditionsOf: (address: string) => readonly Condition[]): WorkerStatus[] => {
      const seen = workersByAddress(workers.snapshot());
      return rpc().workers.map((address) => {
        const worker = seen.get(foldWorker(address));
        const { endpoint = null, latencyMs = null, version = null, devices = null } = worker ?? {};
        return { address, endpoint, latencyMs, version, devices, conditions: conditionsOf(address) };
      });
    },
  };
}
