// What passes show of the history: when a generation is in force or stuck, and what drifts from it afterwards.
import type { DriftItem, Outcome } from "../desired/history/entries.ts";
import type { Action, BackoffEntry } from "../plan/actions.ts";
import { backoffKey } from "../plan/actions.ts";
import { isConverged, isSettled, type Loop, type Pass } from "../reconcile/loop.ts";
import type { Base } from "./events.ts";
import type { State } from "./state.ts";

type Parts = Pick<Base, "events"> & Pick<State, "history"> & { readonly loop: Pick<Loop, "backoff"> };

export function recordHistory({ events, history, loop }: Parts): void {
  /** The generation that a pass of this run found in force. */
  let inForce: number | null = null;
  events.on("passed", (pass) => {
    const { generation } = pass.desired;
    const last = history.current().entries.at(-1);
    const wasInForce = last?.generation === generation ? last.outcome === "converged" : inForce === generation;
    if (wasInForce) {
      const what = driftIn(pass, inForce === generation);
      if (what.length > 0) history.drifted(generation, what);
    } else {
      const { outcome, problem } = outcomeOf(pass, loop.backoff());
      history.outcome(generation, outcome, problem);
    }
    if (!isConverged(pass)) return;
    if (history.mended()) events.emit("driftMended");
    inForce = generation;
  });
}

/** Holds that end by themselves, or with what they wait for. */
const passing: ReadonlySet<string> = new Set(["waiting", "settling", "prune", "writer"]);

export function outcomeOf(
  pass: Pick<Pass, "desired" | "observed" | "plan" | "running">,
  backoff: ReadonlyMap<string, BackoffEntry>,
): { readonly outcome: Exclude<Outcome, "superseded">; readonly problem: string | null } {
  const { plan, running, desired } = pass;
  const problems = [
    ...plan.held.flatMap(({ action, why, because }) =>
      passing.has(why) ? [] : (backoff.get(backoffKey(action))?.message ?? `${action.message}: ${because}`),
    ),
    ...[...plan.findings].map(([id, problem]) => `${id}: ${problem}`),
  ];
  const problem = problems.length === 0 ? null : [...new Set(problems)].join("; ");
  if (isSettled(pass)) return { outcome: problem === null ? "converged" : "stuck", problem };
  const isMoving = plan.actions.length > 0 || running.length > 0 || plan.held.some(({ why }) => why === "backoff");
  const isStopped = desired.document.suspend || plan.held.some(({ why }) => why === "stalled" || why === "room");
  return { outcome: isStopped && !isMoving ? "stuck" : "pending", problem };
}

/** What brings back a document that was in force; not what a request or the time asks for. Before that in this run, a router and engines that are
 * started are no drift. */
export function driftIn({ plan, desired }: Pick<Pass, "plan" | "desired">, isRunning: boolean): readonly DriftItem[] {
  if (desired.document.suspend) return [];
  const held = plan.held.flatMap(({ action, why }) => (why === "prune" ? [] : action));
  return [...plan.actions, ...held]
    .filter((action) => isDrift(action, isRunning))
    .map(({ kind, key, reason, message }) => ({ kind, key, reason, message }));
}

function isDrift(action: Action, isRunning: boolean): boolean {
  if (action.kind === "model.remove" || "requested" in action) return false;
  if (action.kind.startsWith("speech.st")) return isRunning && action.reason === "EngineCrashed";
  return isRunning || !action.kind.startsWith("router.");
}
