// Plans for people who ask for them, wired: of the newest pass, and of a change that is not made.

import { steadyNow } from "../core/steady.ts";
import { memoryOf } from "../engines/process/memory.ts";
import type { AppDeps } from "../http/app.ts";
import { plannedMemory } from "../memory/planned.ts";
import type { Observed } from "../plan/observed.ts";
import type { WholePlan } from "../plan/whole/steps.ts";
import { wholePlan } from "../reconcile/whole-plan.ts";
import type { Core } from "./core.ts";
import { planRules } from "./plan-rules.ts";

type Planning = Pick<AppDeps["own"], "planOf" | "planFor">;

export function createPlanning(core: Core): Planning {
  const { loop, store, scheduler, settings } = core;
  const common = async ({ offline, signal }: Parameters<Planning["planOf"]>[1]) => ({
    inFlight: scheduler.inFlight(),
    memory: await memoryOfModels(core.router.instances.list()),
    askHub: offline ? null : core.askHub,
    signal,
  });
  const context = () => ({
    now: steadyNow(),
    ...planRules(settings),
    underWay: loop.underWay(),
  });
  const withMemory = async (whole: WholePlan, before: Observed) => ({
    ...whole,
    memory: await plannedMemory(core.memory, core.hubNeeds, before, whole),
  });
  return {
    planOf: async ({ desired, observed, plan, running }, question) => {
      const whole = await wholePlan({
        ...(await common(question)),
        desired: desired.document,
        observed,
        now: plan,
        running,
        context: { ...context(), backoff: loop.backoff() },
      });
      return withMemory(whole, observed);
    },
    /** Errors: those of the change, `wait_timeout`. */
    planFor: async (change, ifMatch, question) => {
      store.preview(change, ifMatch);
      const wait = { generation: 0, fresh: true, timeoutMs: settings.waitTimeoutMs, signal: question.signal };
      const pass = await loop.waitFor({ ...wait, test: () => true });
      const desired = store.preview(change, ifMatch);
      const observed = { ...pass.observed, ...(await core.observeFor(desired)) };
      // A new document is a new chance for what had failed.
      const whole = await wholePlan({
        ...(await common(question)),
        desired,
        observed,
        running: [],
        context: { ...context(), backoff: new Map() },
      });
      return withMemory(whole, observed);
    },
  };
}

/** Bytes by the id by which the router is asked. */
async function memoryOfModels(
  instances: ReturnType<Core["router"]["instances"]["list"]>,
): Promise<Map<string, number>> {
  const found = await Promise.all(
    instances.map(async ({ id, pid }) => [id, pid === null ? null : await memoryOf(pid)] as const),
  );
  return new Map(found.flatMap(([id, bytes]) => (bytes === null ? [] : [[id, bytes] as const])));
}
