// Situations of a gateway, for the tests of what is said of them: everything left out is as at rest.
import type { SourceStatus } from "../../../src/desired/document/parse.ts";
import type { Action, BackoffEntry, Plan, RunningAction } from "../../../src/plan/actions.ts";
import { plan } from "../../../src/plan/plan.ts";
import type { StatusInput } from "../../../src/status/finding.ts";
import { desiredFrom, known, silenceLimitMs, type WorldInput, world } from "../plan/world.ts";

export const applied: SourceStatus = {
  path: "/gateway.yaml",
  valid: true,
  reason: "Applied",
  message: "applied",
  problems: [],
};
export const failure: BackoffEntry = {
  failures: 1,
  until: 2_000_000,
  stalled: false,
  code: "hub_unreachable",
  reason: "HubUnreachable",
  message: "no network",
  hint: "Check the network.",
};

export interface Situation extends Partial<Omit<StatusInput, "desired" | "observed" | "plan">> {
  readonly document?: object;
  readonly machine?: WorldInput;
  readonly freeBytes?: number;
}

export function statusInput({ document = {}, machine = {}, freeBytes = 1e12, ...rest }: Situation): StatusInput {
  const desired = desiredFrom(document);
  const observed = { ...world(desired, machine), freeBytes: known(freeBytes) };
  const backoff = rest.backoff ?? new Map<string, BackoffEntry>();
  const found: Plan = plan(desired, observed, { now: 1_000_000, backoff, silenceLimitMs });
  return {
    desired,
    observed,
    plan: found,
    source: applied,
    running: [],
    backoff,
    hub: { status: "unknown", message: "" },
    engineProblem: null,
    state: { writable: true, reason: "Writable", message: "it can be written" },
    requests: {
      failing: new Map(),
      firstTokens: new Map(["acme/a:Q8_0", "acme/b:TINY"].map((id) => [id, 7])),
    },
    fits: new Map(),
    command: (...words) => ["model-gateway", ...words].join(" "),
    ...rest,
  };
}

export function conditionOf(
  type: string,
  findings: readonly { type: string; status: string; reason: string; message: string }[],
): string {
  const found = findings.find((finding) => finding.type === type);
  return `${found?.status} ${found?.reason}`;
}

export const model = { models: ["acme/a:Q8_0"] };
export const pullOfModel: Action = {
  kind: "model.pull",
  key: "model/acme/a:Q8_0",
  model: "acme/a:Q8_0",
  revision: undefined,
  reason: "Absent",
  message: "pull acme/a:Q8_0",
  disrupts: [],
};
export const pulled: WorldInput = { files: ["acme/a/a-Q8_0.gguf"] };
export const stalledPull = new Map([
  [
    "model.pull model/acme/a:Q8_0",
    { ...failure, stalled: true, code: "quant_not_found", reason: "QuantNotFound" } as const,
  ],
]);

export const pull: Action & { readonly kind: "model.pull" } = {
  kind: "model.pull",
  key: "model/a/b:c",
  model: "a/b:c",
  revision: undefined,
  reason: "ModelAbsent",
  message: "pull a/b:c",
  disrupts: [],
};
export const write: Action = {
  kind: "preset.write",
  key: "preset",
  text: "[*]",
  replaces: "",
  reason: "PresetAbsent",
  message: "write",
  disrupts: [],
};
export const running: RunningAction = {
  action: pull,
  lane: "transfer",
  startedAt: 1_000,
  progress: { phase: "downloading", completed: 5, total: 10 },
};

export function somePlan(parts: Partial<Plan>): Plan {
  return {
    actions: [],
    held: [],
    unmanaged: [],
    spared: [],
    findings: new Map(),
    rolledBack: new Set(),
    autos: new Map(),
    ...parts,
  };
}
