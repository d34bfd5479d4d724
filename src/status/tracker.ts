// Keeps the conditions from pass to pass, so that each knows since when it holds, and tells when one changes.
import type { Pass } from "../reconcile/loop.ts";
import { type Condition, gatewayFindings, modelFindings, type StatusInput, toConditions } from "./conditions.ts";
import { modelIds, type ModelStatus } from "./report.ts";

export interface StatusTracker {
  update(pass: Pass, input: StatusInput): void;
  conditions(): readonly Condition[];
  models(): readonly ModelStatus[];
}

export function createStatusTracker(options: { readonly now: () => number; readonly onChange: (subject: string, condition: Condition) => void }): StatusTracker {
  let conditions: readonly Condition[] = [];
  let models: readonly ModelStatus[] = [];

  function announce(subject: string, before: readonly Condition[], after: readonly Condition[]): void {
    for (const condition of after) {
      const earlier = before.find((other) => other.type === condition.type);
      if (earlier?.status !== condition.status || earlier.reason !== condition.reason) options.onChange(subject, condition);
    }
  }

  return {
    update: (pass, input) => {
      const { generation } = pass.desired;
      const next = toConditions(gatewayFindings(input), conditions, generation, options.now());
      announce("gateway", conditions, next);
      conditions = next;
      models = modelIds(pass.desired, pass.plan.unmanaged).map(({ id, desired }) => {
        const before = models.find((model) => model.id === id)?.conditions ?? [];
        const after = toConditions(modelFindings(id, input), before, generation, options.now());
        announce(id, before, after);
        return { id, desired, conditions: after };
      });
    },
    conditions: () => conditions,
    models: () => models,
  };
}
