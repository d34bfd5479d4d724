// Keeps the conditions from pass to pass, so that each knows since when it holds, and tells when one changes.
import { foldWorker } from "../core/worker-address.ts";
import { workersByAddress } from "../plan/workers.ts";
import type { Pass } from "../reconcile/loop.ts";
import { type Condition, gatewayFindings, type StatusInput, toConditions } from "../status/conditions.ts";
import { modelFindings } from "../status/model-findings.ts";
import { type ModelStatus, modelIds } from "../status/report.ts";
import { waitingWorkers, workerFindings } from "../status/worker-conditions.ts";

export interface StatusTracker {
  update(pass: Pass, input: StatusInput): void;
  conditions(): readonly Condition[];
  models(): readonly ModelStatus[];
  /** Of the document's RPC workers, by address. */
  workers(): ReadonlyMap<string, readonly Condition[]>;
}

export function createStatusTracker(options: {
  readonly now: () => number;
  /** The model that uses an RPC worker. */
  readonly usedBy: (endpoint: string | null) => string | null;
  readonly onChange: (subject: string, condition: Condition) => void;
}): StatusTracker {
  let conditions: readonly Condition[] = [];
  let models: readonly ModelStatus[] = [];
  let workers: ReadonlyMap<string, readonly Condition[]> = new Map();

  return {
    update: (pass, input) => {
      const { generation } = pass.desired;
      const before = new Map([
        ["gateway", conditions],
        ...models.map((model): [string, readonly Condition[]] => [model.id, model.conditions]),
        ...[...workers].map(([address, known]): [string, readonly Condition[]] => [`worker/${address}`, known]),
      ]);
      const since = (subject: string): readonly Condition[] => before.get(subject) ?? [];
      conditions = toConditions(gatewayFindings(input), since("gateway"), generation, options.now());
      models = modelIds(pass.desired, pass.plan.unmanaged).map(({ id, desired }) => ({
        id,
        desired,
        conditions: toConditions(modelFindings(id, input), since(id), generation, options.now()),
      }));
      const seen = workersByAddress(input.observed.workers.workers);
      const waiting = new Set(waitingWorkers(input.desired, input.observed));
      workers = new Map(
        input.desired.rpc.workers.map((address) => {
          const worker = seen.get(foldWorker(address));
          const usedBy = options.usedBy(worker?.endpoint ?? null);
          const findings = workerFindings(worker, usedBy, waiting.has(address));
          return [address, toConditions(findings, since(`worker/${address}`), generation, options.now())];
        }),
      );
      // Told only when all of it is in place: whoever is told looks at once.
      for (const [subject, after] of [
        ["gateway", conditions] as const,
        ...models.map((model) => [model.id, model.conditions] as const),
        ...[...workers].map(([address, after]) => [`worker/${address}`, after] as const),
      ]) {
        for (const condition of after) {
          const earlier = since(subject).find((other) => other.type === condition.type);
          if (earlier?.status !== condition.status || earlier.reason !== condition.reason)
            options.onChange(subject, condition);
        }
      }
    },
    conditions: () => conditions,
    models: () => models,
    workers: () => workers,
  };
}
