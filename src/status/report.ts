// The bodies of /status and /api/plan from what the loop found. Pure.
import type { Desired, DesiredState, Removal } from "../desired/document/document.ts";
import type { SourceStatus } from "../desired/document/parse.ts";
import { type Action, type HeldAction, isAtRest, type Plan, type RunningAction } from "../plan/actions.ts";
import type { RouterSnapshot, WorkerDevice } from "../plan/observed.ts";
import { type Condition, finding } from "./finding.ts";
import type { WaitingReport } from "./requests.ts";
import type { SpeechReport } from "./speech.ts";
import { rpcWarning } from "./worker-conditions.ts";

export interface StatusReport {
  readonly gateway: {
    readonly version: string;
    /** Of this run: tells it from other gateways. */
    readonly id: string;
    readonly startedAt: string;
    readonly ready: boolean;
  };
  /** The connection check. */
  readonly router: {
    readonly connected: boolean;
    readonly phase: string;
    readonly pid: number | null;
    readonly binary: string | null;
    readonly crashes: number;
  };
  readonly rpc: {
    readonly mode: "single" | "rpc";
    readonly minWorkers: number;
    /** What everybody who uses RPC mode should know; null in single mode. */
    readonly warning: string | null;
    readonly workers: readonly WorkerStatus[];
  };
  readonly speech: SpeechReport;
  readonly sync: "Synced" | "OutOfSync" | "Unknown";
  readonly health: "Healthy" | "Progressing" | "Degraded" | "Suspended";
  readonly generation: number;
  readonly observedGeneration: number;
  readonly source: SourceStatus;
  readonly conditions: readonly Condition[];
  readonly models: readonly ModelStatus[];
  readonly running: readonly object[];
  readonly planned: readonly object[];
  /** Answers under way, by model. */
  readonly inFlight: Readonly<Record<string, number>>;
  /** Requests that wait for a model, and what for; those who wait longest first. */
  readonly waiting: readonly WaitingReport[];
  /** Models whose files are being deleted because somebody asked for it. */
  readonly removals: readonly RemovalReport[];
}

export interface WorkerStatus {
  readonly address: string;
  /** The address that its name means and the engine is given. */
  readonly endpoint: string | null;
  /** ms to connect to it, when that was tried last. */
  readonly latencyMs: number | null;
  /** Of its protocol. */
  readonly version: string | null;
  /** Its memory, when nothing used it last. */
  readonly devices: readonly WorkerDevice[] | null;
  readonly conditions: readonly Condition[];
}

/** What a stranger may see. */
export interface ShortReport {
  readonly gateway: Pick<StatusReport["gateway"], "version" | "id" | "ready">;
  readonly router: Pick<StatusReport["router"], "connected">;
  readonly rpc: Pick<StatusReport["rpc"], "mode">;
}

export interface RemovalReport {
  readonly id: string;
  /** ISO 8601 */
  readonly requestedAt: string;
  readonly by: string;
}

export interface ModelStatus {
  readonly id: string;
  readonly desired: boolean;
  readonly conditions: readonly Condition[];
}

export function actionBody(action: Action): object {
  const { kind, key, reason, message, disrupts } = action;
  return { kind, key, reason, message, disrupts, ...("model" in action ? { model: action.model } : {}) };
}

/** What the parts of a running gateway know. */
export interface ReportInput {
  readonly version: string;
  readonly id: string;
  /** ms */
  readonly startedAt: number;
  /** ms; null: it does not stop. */
  readonly stoppingSince: number | null;
  readonly desired: DesiredState;
  /** Of the newest pass; null before the first. */
  readonly pass: { readonly desired: DesiredState; readonly plan: Plan } | null;
  readonly router: Pick<RouterSnapshot, "phase" | "pid" | "silentSince" | "crashes">;
  readonly binary: string | null;
  readonly speech: SpeechReport;
  readonly source: SourceStatus;
  readonly conditions: readonly Condition[];
  readonly models: readonly ModelStatus[];
  readonly workers: readonly WorkerStatus[];
  readonly running: readonly RunningAction[];
  readonly inFlight: ReadonlyMap<string, number>;
  readonly waiting: readonly WaitingReport[];
}

export function statusReport(input: ReportInput): StatusReport {
  const { desired, pass, router, conditions } = input;
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
    rpc: rpcBody(desired.document, input.workers),
    speech: input.speech,
    sync: syncOf(conditions, isObserved),
    health: healthOf(conditions, desired.document.suspend),
    generation: desired.generation,
    observedGeneration: pass?.desired.generation ?? 0,
    source: input.source,
    conditions: conditions.map((condition) => whileStopping(condition, input.stoppingSince)),
    models: input.models,
    running: input.running.map(runningBody),
    planned: (pass?.plan.held ?? []).map(heldBody),
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

function rpcBody({ rpc: { mode, minWorkers } }: Desired, workers: readonly WorkerStatus[]): StatusReport["rpc"] {
  return { mode, minWorkers, warning: mode === "rpc" ? rpcWarning : null, workers };
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

function heldBody({ action, why, because, until }: HeldAction): object {
  return { ...actionBody(action), held: why, because, until: until === null ? null : new Date(until).toISOString() };
}

function runningBody({ action, lane, startedAt, progress }: RunningAction): object {
  return {
    ...actionBody(action),
    lane,
    startedAt: startedAt === null ? null : new Date(startedAt).toISOString(),
    progress,
  };
}

export function planBody(plan: Plan, generation: number, running: readonly RunningAction[]): object {
  const isNew = (action: Action): boolean => !running.some((entry) => entry.action.key === action.key);
  return {
    generation,
    converged: isAtRest(plan) && running.length === 0 && plan.findings.size === 0,
    actions: plan.actions.filter(isNew).map(actionBody),
    running: running.map(runningBody),
    held: plan.held.map(heldBody),
    unmanaged: plan.unmanaged,
    spared: plan.spared,
    findings: Object.fromEntries(plan.findings),
  };
}

/** A document that no pass has looked at yet is not in sync, whatever the conditions of the one before say. */
function syncOf(conditions: readonly Condition[], isObserved: boolean): StatusReport["sync"] {
  if (!isObserved) return "OutOfSync";
  const status = conditions.find((condition) => condition.type === "Synced")?.status;
  return status === "True" ? "Synced" : status === "False" ? "OutOfSync" : "Unknown";
}

function healthOf(conditions: readonly Condition[], suspended: boolean): StatusReport["health"] {
  const status = (type: string): string | undefined => conditions.find((condition) => condition.type === type)?.status;
  if (suspended) return "Suspended";
  if (status("Stalled") === "True") return "Degraded";
  if (status("Ready") === "True") return status("Reconciling") === "True" ? "Progressing" : "Healthy";
  return status("Reconciling") === "True" ? "Progressing" : "Degraded";
}

/** Every model that the document names or the cache holds, by the id under which clients ask for it. */
export function modelIds(
  desired: DesiredState,
  unmanaged: readonly string[],
): { readonly id: string; readonly desired: boolean }[] {
  return [
    ...desired.document.models.map((model) => ({ id: model.id, desired: true })),
    ...unmanaged.map((id) => ({ id, desired: false })),
  ];
}
