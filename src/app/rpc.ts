// What RPC mode adds to the parts of a gateway: the watch over its workers, the gate before a load, and what is told of them.
import { foldWorker } from "../core/worker-address.ts";
import type { Desired } from "../desired/document/document.ts";
import type { DesiredStore } from "../desired/store.ts";
import type { Router } from "../engines/llama/router.ts";
import { verdictRules } from "../plan/worker-verdict.ts";
import { endpointsOf, workersByAddress } from "../plan/workers.ts";
import type { Pass } from "../reconcile/loop.ts";
import { createWorkerDialect } from "../rpc/worker-dialect.ts";
import { createWorkers, type Workers } from "../rpc/workers.ts";
import { createRpcGate, type RpcGate } from "../scheduler/rpc-gate.ts";
import type { Settings } from "../settings/settings.ts";
import type { Condition } from "../status/finding.ts";
import type { WorkerStatus } from "../status/report.ts";
import { rpcWarning } from "../status/worker-conditions.ts";

/** ms after the start in which an engine that is there has been found. */
const engineMs = 3_000;

type LossListener = (models: readonly string[], message: string) => void;

export interface Rpc {
  readonly workers: Workers;
  readonly gate: RpcGate;
  /** The engine was found, or is known to be missing. */
  engineChanged(): void;
  /** A worker serves one model at a time: a second one would wait for it for ever. Also until single mode is in force. */
  takesOneModel(): boolean;
  /** Calls back when a worker went while these models used it. */
  onLoss(listener: LossListener): void;
  /** Warns, once each time that RPC mode comes into force. */
  notePass(pass: Pass): void;
  statuses(conditions: ReadonlyMap<string, readonly Condition[]>): WorkerStatus[];
}

export function createRpc(options: {
  readonly settings: Pick<
    Settings,
    "workerIntervalMs" | "workerStableMs" | "workerStallMs" | "stateDir" | "environment"
  >;
  readonly store: Pick<DesiredStore, "current">;
  readonly router: Router;
  readonly pass: () => Pass | null;
  readonly isAnswering: () => boolean;
  /** The engine's path; null while there is none. */
  readonly binary: () => string | null;
  readonly isUnderWay: (key: string) => boolean;
  readonly onChange: () => void;
  readonly now: () => number;
  readonly warn: (message: string, fields: object) => void;
}): Rpc {
  const { settings, store, router, now, warn } = options;
  let noteEngine = (): void => undefined;
  const engineFound = new Promise<void>((resolve) => {
    noteEngine = resolve;
    setTimeout(resolve, engineMs).unref();
  });
  const dialect = createWorkerDialect({
    binary: options.binary,
    environment: settings.environment,
    stateDir: settings.stateDir,
  });
  const listeners: LossListener[] = [];
  let isWarned = false;
  const rpc = (): Desired["rpc"] => store.current().document.rpc;
  const workers = createWorkers({
    rpc,
    router: router.snapshot,
    detachedUsers: router.instances.detachedUsers,
    isAnswering: options.isAnswering,
    takes: async (greeting) => {
      // The workers are looked at while the engine is still being looked for.
      if (options.binary() === null) await engineFound;
      return dialect.takes(greeting);
    },
    intervalMs: settings.workerIntervalMs,
    rules: verdictRules(settings.workerStableMs),
    now,
    onChange: options.onChange,
    onLost: (models, message) => {
      warn("an RPC worker was lost", { models, message });
      for (const listener of listeners) listener(models, message);
    },
  });
  const gate = createRpcGate({
    desired: store.current,
    router,
    workers,
    pass: options.pass,
    isUnderWay: options.isUnderWay,
    stallMs: settings.workerStallMs,
  });

  return {
    workers,
    gate,
    engineChanged: () => noteEngine(),
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
