// The plan whole: the planner, over the outcomes that its actions are expected to have, until nothing is left. It assumes that the
// world stays as observed but for these actions. Pure; a generator, so that its caller can let others run in between: 500 models
// to pull are 600 steps.
import type { PlanBody } from "../../../schemas/plan.ts";
import type { Frozen } from "../../core/json.ts";
import type { Desired } from "../../desired/document/document.ts";
import { type Action, backoffKey, laneOf, type Plan, type PlanContext, type RunningAction } from "../actions.ts";
import { findRouted } from "../find-model.ts";
import { loadedModels, type Observed } from "../observed.ts";
import { plan } from "../plan.ts";
import { namedEntries, withLeft } from "../removals.ts";
import { changesOf } from "./changes.ts";
import type { Failure, HubAnswers } from "./hub-answers.ts";
import { type Outcome, outcomeOf, type World } from "./outcome.ts";

export interface WholeInput {
  readonly desired: Desired;
  readonly observed: Observed;
  readonly context: PlanContext;
  /** What the planner says of them. */
  readonly now: Plan;
  readonly running: readonly RunningAction[];
  readonly answers: HubAnswers;
  /** Responses in flight, by the id by which the router is asked. */
  readonly inFlight: ReadonlyMap<string, number>;
  /** Bytes of memory that loaded models have, by the same id; not known of all. */
  readonly memory: ReadonlyMap<string, number>;
}

type StepBody = Frozen<PlanBody>["steps"][number];

export interface PlannedStep extends Pick<StepBody, "when" | "awaits" | "changes" | "bytes" | "ends"> {
  readonly action: Action;
  /** ms; null: as soon as those before it are done. */
  readonly notBefore: number | null;
}

export interface PlanEnd {
  readonly world: World;
  /** What is planned in that world: what is held then, and what cannot be had. */
  readonly plan: Plan;
  /** Actions that will fail, and why. */
  readonly failures: readonly { readonly action: Action; readonly failure: Failure }[];
  /** False: there are more steps than are shown. */
  readonly isComplete: boolean;
}

export interface WholePlan {
  /** The planner's answer: what runs now, and what is held. */
  readonly now: Plan;
  readonly steps: readonly PlannedStep[];
  readonly end: PlanEnd;
  /** Null: the hub was not to be asked. */
  readonly answers: HubAnswers | null;
}

/** Steps and plans: more than any document of the largest size needs. */
const mostSteps = 5_000;
/** Of more transfers than these, or more times to wait for, several are one round and share the reload that follows. */
const mostRounds = 16;

/** `null`: a pause, in which others may run. */
export function* planSteps(input: WholeInput): Generator<PlannedStep | null, PlanEnd> {
  const { now: first } = input;
  const run = createRun(input);
  const begun = new Map(input.running.map(({ action }) => [action.key, action]));
  const planned = [...first.actions, ...first.held.map(({ action }) => action)];
  for (const { action } of input.running) {
    if (planned.some(({ key }) => key === action.key)) continue;
    const step = run.take(action, "running");
    if (step) yield step;
  }
  /** Under way, or to be started now: each is so once. */
  const soon = new Set(first.actions.map(backoffKey));
  const whenOf = (action: Action): PlannedStep["when"] => {
    if (begun.delete(action.key)) return "running";
    return soon.delete(backoffKey(action)) ? "now" : "later";
  };
  const perRound = Math.max(1, Math.ceil(planned.filter(isTransfer).length / mostRounds));
  let last = "";
  for (let count = 0; count < mostSteps; ) {
    const next = run.next();
    yield null;
    count++;
    if (next === null) continue;
    const { plan: found, actions, awaits } = next;
    // Of what runs side by side first what takes the least time: a reload takes milliseconds, a pull minutes.
    const quick = actions.find((action) => !isTransfer(action));
    const round = quick ? [quick] : actions.slice(0, perRound);
    if (round.length === 0) return run.end(found, true);
    for (const action of round) {
      const { kind, key, reason, message } = action;
      const identity = JSON.stringify([kind, key, reason, message]);
      // Its outcome was another than expected: what follows from it is not known.
      if (identity === last) return run.end(found, false);
      last = identity;
      count++;
      const step = run.take(action, whenOf(action), awaits);
      if (step) yield step;
    }
  }
  return run.end(first, false);
}

function isTransfer({ kind }: Action): boolean {
  return laneOf(kind) === "transfer";
}

/** The world as far as the steps have brought it. */
function createRun({ desired, observed, context, answers, memory, inFlight: counts }: WholeInput) {
  const backoff = new Map(context.backoff);
  const failures: { readonly action: Action; readonly failure: Failure }[] = [];
  const inFlight = new Map(counts);
  /** Changes of settings that a step has shown: the reload shows only the others. */
  const told = new Set<string>();
  let world: World = { desired, observed };
  let { now } = context;
  let shownNow = now;

  function planNow(): Plan {
    world = { ...world, observed: noteLeft(world, now) };
    const { silenceLimitMs, isReader } = context;
    return plan(world.desired, world.observed, { now, backoff, silenceLimitMs, isReader });
  }

  function record(action: Action, outcome: Extract<Outcome, { kind: "fails" }>): null {
    const { failure, neededBytes } = outcome;
    failures.push({ action, failure });
    const stalled = neededBytes === undefined;
    backoff.set(backoffKey(action), { ...failure, failures: 1, until: now, stalled, neededBytes });
    return null;
  }

  return {
    /** What can be done next; null: the time has passed to when more can be. */
    next: (): { readonly plan: Plan; readonly actions: readonly Action[]; readonly awaits: string | null } | null => {
      const found = planNow();
      if (found.actions.length > 0) return { plan: found, actions: found.actions, awaits: null };
      const due = dueTimes(found, world.observed, context.silenceLimitMs)
        .filter((at) => at > now)
        .toSorted((a, b) => a - b);
      const next = due[Math.ceil(due.length / mostRounds) - 1];
      if (next !== undefined) {
        now = next;
        return null;
      }
      const waiting = found.held.find(({ why }) => why === "waiting");
      return { plan: found, actions: waiting ? [waiting.action] : [], awaits: waiting?.because ?? null };
    },
    /** The step that the action is; null if it will fail. */
    take: (action: Action, when: PlannedStep["when"], awaits: string | null = null): PlannedStep | null => {
      const outcome = outcomeOf(action, world, { answers, now });
      if (outcome.kind === "fails") return record(action, outcome);
      const before = world;
      world = outcome.world;
      backoff.delete(backoffKey(action));
      const notBefore = now > shownNow ? now : null;
      shownNow = now;
      const changes = changesOf(action, before, world).filter((change) => {
        const text = JSON.stringify(change);
        return !told.has(text) && told.add(text);
      });
      const ends = endedModels(before.observed, world.observed).map((id) => {
        const [count = 0, memoryBytes = null] = [inFlight.get(id), memory.get(id)];
        inFlight.delete(id);
        return { model: idOf(before.observed, id), inFlight: count, memoryBytes };
      });
      return { action, when, notBefore, awaits, changes, bytes: outcome.bytes, ends };
    },
    end: (found: Plan, isComplete: boolean): PlanEnd => ({ world, plan: found, failures, isComplete }),
  };
}

/** When the plan changes by itself. */
function dueTimes({ held }: Plan, { router }: Observed, silenceLimitMs: number): number[] {
  const silent = router.silentSince === null || router.phase !== "ready" ? [] : [router.silentSince + silenceLimitMs];
  return [...held.flatMap(({ until }) => until ?? []), ...silent];
}

/** As each pass of the gateway notes it: the time of a prune runs from then on. */
function noteLeft({ desired, observed }: World, now: number): Observed {
  const named = namedEntries(desired, observed);
  if (named === null) return observed;
  const inventory = observed.inventory.map((entry) => withLeft(entry, !named.has(entry.id), now));
  return inventory.some((entry, index) => entry !== observed.inventory[index]) ? { ...observed, inventory } : observed;
}

function endedModels({ router: before }: Observed, { router: after }: Observed): string[] {
  if (before.models.state === "unknown" || after.models.state === "unknown") return [];
  const left = loadedModels(after.models.value);
  return loadedModels(before.models.value).filter((id) => !left.includes(id));
}

function idOf({ cache }: Observed, upstreamId: string): string {
  const models = cache.state === "known" ? cache.value.models : [];
  return findRouted(models, upstreamId)?.id ?? upstreamId;
}
