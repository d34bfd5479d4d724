// Plans for people who ask for them, wired: of the newest pass, and of a change that is not made.
import { steadyNow } from "../core/steady.ts";
import type { AppDeps } from "../http/app.ts";
import { wholePlan } from "../reconcile/whole-plan.ts";
import type { Core } from "./core.ts";

type Planning = Pick<AppDeps["own"], "planOf" | "planFor">;

export function createPlanning(core: Core): Planning {
  const { loop, store, scheduler, settings } = core;
  const common = ({ offline, signal }: Parameters<Planning["planOf"]>[1]) => ({
    inFlight: scheduler.inFlight(),
    askHub: offline ? null : core.askHub,
    signal,
  });
  const context = () => ({ now: steadyNow(), silenceLimitMs: settings.silenceLimitMs, underWay: loop.underWay() });
  return {
    planOf: ({ desired, observed, plan, running }, question) =>
      wholePlan({
        ...common(question),
        desired: desired.document,
        observed,
        now: plan,
        running,
        context: { ...context(), backoff: loop.backoff() },
      }),
    /** Errors: those of the change, `wait_timeout`. */
    planFor: async (change, ifMatch, question) => {
      store.preview(change, ifMatch);
      const wait = { generation: 0, fresh: true, timeoutMs: settings.waitTimeoutMs, signal: question.signal };
      const pass = await loop.waitFor({ ...wait, test: () => true });
      const desired = store.preview(change, ifMatch);
      const observed = { ...pass.observed, ...(await core.observeFor(desired)) };
      // A new document is a new chance for what had failed.
      return wholePlan({
        ...common(question),
        desired,
        observed,
        running: [],
        context: { ...context(), backoff: new Map() },
      });
    },
  };
}
