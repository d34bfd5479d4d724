// The body of /status from what the loop found. Pure.
import type { PlanBody } from "../../schemas/plan.ts";
import type { ShortStatusBody, StatusBody } from "../../schemas/status.ts";
import { matchName } from "../core/ids.ts";
import type { Frozen } from "../core/json.ts";
import type { DesiredState, Removal } from "../desired/document/document.ts";
import type { Action, HeldAction, Plan, RunningAction } from "../plan/actions.ts";
import type { RouterSnapshot } from "../plan/observed.ts";
import { type Condition, finding, notServing } from "./finding.ts";
import { rpcWarning } from "./worker-conditions.ts";

export type StatusReport = Frozen<StatusBody>;
/** Without a license key. */
export type ShortReport = Frozen<ShortStatusBody>;
export type WorkerStatus = StatusReport["rpc"]["workers"][number];
export type RemovalReport = StatusReport["removals"][number];
type ActionBody = Frozen<PlanBody>["actions"][number];
type HeldBody = StatusReport["planned"][number];
type RunningBody = StatusReport["running"][number];

export function actionBody(action: Action): ActionBody {
  const { kind, key, reason, message, disrupts } = action;
  return { kind, key, reason, message, disrupts, ...("model" in action ? { model: action.model } : {}) };
}

/** What the parts of a running gateway know. */
export interface ReportInput
  extends Pick<StatusReport, "speech" | "source" | "conditions" | "models" | "waiting" | "memory"> {
  readonly version: string;
  readonly id: string;
  /** ms */
  readonly startedAt: number;
  /** ms; null: it does not stop. */
  readonly stoppingSince: number | null;
  readonly desired: DesiredState;
  /** Of the newest pass; null before the first. */
  readonly pass: { readonly desired: DesiredState; readonly plan: Plan } | null;
  /** ms: when it ended. */
  readonly passedAt: number | null;
  readonly router: Pick<RouterSnapshot, "phase" | "pid" | "silentSince" | "crashes">;
  readonly binary: string | null;
  readonly workers: readonly WorkerStatus[];
  readonly running: readonly RunningAction[];
  readonly inFlight: ReadonlyMap<string, number>;
}

export function statusReport(input: ReportInput): StatusReport {
  const { desired, pass, router, conditions } = input;
  const { mode, minWorkers } = desired.document.rpc;
  const isObserved = pass?.desired.generation === desired.generation;
  const isReady = conditions.some((condition) => condition.type === "Ready" && condition.status === "True");
  return {
    gateway: {
      version: input.version,
      id: input.id,
      startedAt: new Date(input.startedAt).toISOString(),
      ready: isReady && input.stoppingSince === null,
    },
    router: {
      connected: router.phase === "ready" && router.silentSince === null,
      phase: router.phase,
      pid: router.pid,
      binary: input.binary,
      crashes: router.crashes.length,
    },
    rpc: { mode, minWorkers, warning: mode === "rpc" ? rpcWarning : null, workers: input.workers },
    speech: input.speech,
    sync: syncOf(conditions, isObserved),
    health: healthOf(conditions, desired.document.suspend),
    generation: desired.generation,
    documentHash: desired.hash,
    observedGeneration: pass?.desired.generation ?? 0,
    lastPass: timeOf(input.passedAt),
    applied: desired.applied,
    source: input.source,
    conditions: conditions.map((condition) => whileStopping(condition, input.stoppingSince)),
    models: input.models,
    running: input.running.map(runningBody),
    planned: (pass?.plan.held ?? []).map(heldBody),
    memory: input.memory,
    inFlight: Object.fromEntries(input.inFlight),
    waiting: input.waiting,
    removals: desired.document.removals.map(removalBody),
  };
}

/** No pass comes any more that could tell. */
function whileStopping(condition: Condition, since: number | null): Condition {
  if (since === null || condition.type !== "Ready") return condition;
  const { status, lastTransitionTime } = condition;
  return {
    ...condition,
    ...finding("Ready", "ShuttingDown"),
    lastTransitionTime: status === "False" ? lastTransitionTime : new Date(since).toISOString(),
  };
}

export function shortReport({ gateway, router, rpc }: StatusReport): ShortReport {
  return {
    gateway: { version: gateway.version, id: gateway.id, ready: gateway.ready },
    router: { connected: router.connected },
    rpc: { mode: rpc.mode },
  };
}

export function removalBody({ id, requestedAt, by }: Removal): RemovalReport {
  return { id, requestedAt, by };
}

export function timeOf(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

export function heldBody({ action, why, because, until }: HeldAction): HeldBody {
  return { ...actionBody(action), held: why, because, until: timeOf(until) };
}

export function runningBody({ action, lane, startedAt, progress }: RunningAction): RunningBody {
  return { ...actionBody(action), lane, startedAt: timeOf(startedAt), progress };
}

/** A document that no pass has looked at yet is not in sync, whatever the conditions of the one before say. */
function syncOf(conditions: readonly Condition[], isObserved: boolean): StatusReport["sync"] {
  if (!isObserved) return "OutOfSync";
  const status = conditions.find((condition) => condition.type === "Synced")?.status;
  return status === "True" ? "Synced" : status === "False" ? "OutOfSync" : "Unknown";
}

function healthOf(conditions: readonly Condition[], suspended: boolean): StatusReport["health"] {
  const is = (type: string): boolean => conditions.some((each) => each.type === type && each.status === "True");
  if (suspended) return "Suspended";
  const isProgressing = is("Reconciling");
  if (notServing(conditions)) return isProgressing && !is("Stalled") ? "Progressing" : "Degraded";
  if (!is("Healthy")) return "Degraded";
  return isProgressing ? "Progressing" : "Healthy";
}

/** Every model that the document names or the cache holds, by the id under which clients ask for it. */
export function modelIds(
  desired: DesiredState,
  unmanaged: readonly string[],
): Omit<StatusReport["models"][number], "conditions" | "runtime">[] {
  return [
    ...desired.document.models.map(({ id, variants, keepAlive, maxQueue, priority }) => ({
      id,
      desired: true,
      ...(variants && { variants: variants.map(({ name }) => name) }),
      ...(keepAlive !== undefined && { keepAlive }),
      ...(maxQueue !== undefined && { maxQueue }),
      ...(priority !== undefined && { priority }),
    })),
    ...unmanaged.map((id) => ({ id, desired: false })),
  ];
}

/** The one that a client means by a name, of these. */
export function modelNamed(models: StatusReport["models"], name: string): StatusReport["models"][number] | undefined {
  const match = matchName(
    name,
    models.map(({ id }) => ({ id, aliases: [] })),
  );
  return match.kind === "found" ? models.find(({ id }) => id === match.id) : undefined;
}
