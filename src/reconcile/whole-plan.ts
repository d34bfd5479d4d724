// The plan whole, for people who ask for it: what is planned now, what the hub says of the pulls, and every step to the end.
import { setImmediate } from "node:timers/promises";
import type { AskHub } from "../observe/hub-answers.ts";
import type { Plan } from "../plan/actions.ts";
import { plan } from "../plan/plan.ts";
import { isPull } from "../plan/whole/hub-answers.ts";
import { type PlannedStep, planSteps, type WholeInput, type WholePlan } from "../plan/whole/steps.ts";

interface Question extends Omit<WholeInput, "answers" | "now"> {
  /** Absent: it is made here. */
  readonly now?: Plan;
  /** Null: the hub is not asked. */
  readonly askHub: AskHub | null;
  readonly signal?: AbortSignal;
}

/** ms of work between which others run. */
const sliceMs = 5;

export async function wholePlan({ askHub, signal, ...input }: Question): Promise<WholePlan> {
  const { now = plan(input.desired, input.observed, input.context) } = input;
  const pulls = [...now.actions, ...now.held.map(({ action }) => action)].filter(isPull);
  const answers = askHub && (await askHub(pulls, signal));
  const run = planSteps({ ...input, now, answers: answers ?? new Map() });
  const steps: PlannedStep[] = [];
  // First and last a pause too: before it a pass ends in this turn of the event loop, after it the response is written.
  for (let began = Number.NEGATIVE_INFINITY; ; ) {
    if (performance.now() - began >= sliceMs) {
      await setImmediate();
      signal?.throwIfAborted();
      began = performance.now();
    }
    const { done, value } = run.next();
    if (done) {
      await setImmediate();
      return { now, steps, end: value, answers };
    }
    if (value) steps.push(value);
  }
}
