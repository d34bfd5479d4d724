// The body of /api/plan and of dry runs. Pure.
import type { PlanBody } from "../../schemas/plan.ts";
import type { Frozen } from "../core/json.ts";
import { type Action, backoffKey, isAtRest, type RunningAction } from "../plan/actions.ts";
import type { HubAnswers } from "../plan/whole/hub-answers.ts";
import type { PlanEnd, PlannedStep, WholePlan } from "../plan/whole/steps.ts";
import { totalsOf } from "../plan/whole/totals.ts";
import { actionBody, heldBody, runningBody, timeOf } from "./report.ts";

type Body = Frozen<PlanBody>;

/** With what the models need of memory; absent: it was not asked. */
export interface TalliedPlan extends WholePlan {
  readonly memory?: Body["memory"];
}

interface PlanInput extends TalliedPlan {
  readonly generation: number;
  readonly running: readonly RunningAction[];
}

export function planBody({ now, steps, end, answers, generation, running, memory = null }: PlanInput): Body {
  const isNew = (action: Action): boolean => !running.some((entry) => entry.action.key === action.key);
  const remaining = remainingOf(end);
  const problems = problemsOf(end);
  return {
    generation,
    converged: isAtRest(now) && running.length === 0 && now.findings.size === 0,
    steps: steps.map(stepBody),
    complete: end.isComplete,
    remaining,
    problems,
    hub: hubBody(answers),
    totals: { ...totalsOf(steps), held: remaining.length, problems: problems.length },
    memory,
    actions: now.actions.filter(isNew).map(actionBody),
    running: running.map(runningBody),
    held: now.held.map(heldBody),
    unmanaged: now.unmanaged,
    spared: now.spared,
    findings: Object.fromEntries(now.findings),
  };
}

function stepBody({ action, notBefore, ...step }: PlannedStep): Body["steps"][number] {
  return { ...actionBody(action), ...step, notBefore: timeOf(notBefore) };
}

/** Without those that will fail, unless for a disk that is too full: they are problems. */
function remainingOf({ plan, failures }: PlanEnd): Body["remaining"] {
  const failing = new Set(failures.filter(isProblem).map(({ action }) => backoffKey(action)));
  return plan.held.filter(({ action }) => !failing.has(backoffKey(action))).map(heldBody);
}

function problemsOf({ plan, failures }: PlanEnd): Body["problems"] {
  const refused = failures.filter(isProblem).map(({ action, failure: { code, message, hint } }) => {
    return { subject: "model" in action ? action.model : action.key, code, message, hint };
  });
  return [...refused, ...[...plan.findings].map(([subject, message]) => ({ subject, message }))];
}

/** One for which the disk is too full is held, with what is missing. */
function isProblem({ failure }: PlanEnd["failures"][number]): boolean {
  return failure.code !== "disk_full";
}

function hubBody(answers: HubAnswers | null): Body["hub"] {
  const unanswered = [...(answers ?? [])].flatMap(([question, answer]) =>
    answer.kind === "unknown" ? { question, why: answer.why } : [],
  );
  return { asked: answers !== null, unanswered };
}
