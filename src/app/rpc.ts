// What RPC mode adds to the parts of a gateway: the watch over its workers, the gate before a load, and what is told of them.
import { foldWorker } from "../core/worker-address.ts";
import type { Desired } from "../desired/document/document.ts";
import type { DesiredStore } from "../desired/store.ts";
import type { Router } from "../engines/llama/router.ts";
import { verdictRules } from "../plan/worker-verdict.ts";
import { endpointsOf, workersByAddress } from "../plan/workers.ts";
import type { Pass } from "../reconcile/loop.ts";
import { createWorkers, type Workers } from "../rpc/workers.ts";
import type { Changes } from "../scheduler/change-signal.ts";
import { createLoadGate, type LoadGate } from "../scheduler/rpc-gate.ts";
import type { Settings } from "../settings/settings.ts";
import type { Condition } from "../status/finding.ts";
import type { WorkerStatus } from "../status/report.ts";
import { rpcWarning } from "../status/worker-conditions.ts";

type LossListener = (models: readonly string[], message: string) => void;

export interface Rpc {
  readonly workers: Workers;
  readonly gate: LoadGate;
  /** A worker serves one model at a time: a second one would wait for it for ever. Also until single mode is in force. */
  takesOneModel(): boolean;
  /** Calls back when a worker went while these models used it. */
  onLoss(listener: LossListener): void;
  /** Warns, once each time that RPC mode comes into force. */
  notePass(pass: Pass): void;
  statuses(conditions: ReadonlyMap<string, readonly Condition[]>): WorkerStatus[];
}

export function createRpc(options: {
  readonly settings: Pick<Settings, "workerIntervalMs" | "workerStableMs" | "workerStallMs">;
  readonly store: Pick<DesiredStore, "current">;
  readonly router: Router;
  readonly changes: Changes;
  readonly pass: () => Pass | null;
  readonly isAnswering: () => boolean;
  readonly isUnderWay: (key: string) => boolean;
  readonly onChange: () => void;
  readonly now: () => number;
  readonly warn: (message: string, fields: object) => void;
}): Rpc {
  const { settings, store, router, changes, now, warn } = options;
  const listeners: LossListener[] = [];
  let isWarned = false;
  const rpc = (): Desired["rpc"] => store.current().document.rpc;
  const workers = createWorkers({
    rpc,
    router: router.snapshot,
    detachedUsers: router.instances.detachedUsers,
    isAnswering: options.isAnswering,
    intervalMs: settings.workerIntervalMs,
    rules: verdictRules(settings.workerStableMs),
    now,
    onChange: () => {
      changes.poke();
      options.onChange();
    },
    onLost: (models, message) => {
      warn("an RPC worker was lost", { models, message });
      for (const listener of listeners) listener(models, message);
    },
  });
  const gate = createLoadGate({
    desired: store.current,
    router,
    workers,
    changes,
    pass: options.pass,
    isUnderWay: options.isUnderWay,
    stallMs: settings.workerStallMs,
    now,
  });

  return {
    workers,
    gate,
    takesOneModel: () => {
      const { models } = router.snapshot();
      if (rpc().mode === "rpc") return true;
      return models.state === "known" && models.value.some((model) => endpointsOf(model).length > 0);
    },
    onLoss: (listener) => void listeners.push(listener),
    notePass: ({ desired }) => {
      const isOn = desired.document.rpc.mode === "rpc";
      if (isOn && !isWarned) warn(rpcWarning, { workers: desired.document.rpc.workers });
      isWarned = isOn;
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
