// What requests meet with, wired: who is let in to which model, and what is told of those who wait. Starts nothing.
import type { Damage } from "../cache/scan/damage.ts";
import { GatewayError, toGatewayError } from "../core/errors.ts";
import type { DesiredStore } from "../desired/store.ts";
import type { EngineSource } from "../engines/llama/engine-source.ts";
import type { Router } from "../engines/llama/router.ts";
import type { CachedModel } from "../plan/observed.ts";
import { createScheduler, type Scheduler } from "../scheduler/scheduler.ts";
import type { Settings } from "../settings/settings.ts";
import type { StatusInput } from "../status/conditions.ts";
import type { StatusReport } from "../status/report.ts";
import { type CachedFacts, createCachedFacts } from "./cached-facts.ts";
import type { Events } from "./events.ts";
import type { Rpc } from "./rpc.ts";
import { warnTo } from "./warn.ts";

export interface Requests {
  readonly scheduler: Scheduler;
  readonly facts: CachedFacts;
  /** For conditions. */
  met(): StatusInput["requests"];
  /** By the models' own ids. */
  underWay(): { readonly inFlight: ReadonlyMap<string, number>; readonly waiting: StatusReport["waiting"] };
}

export function createRequests(options: {
  readonly settings: Settings;
  readonly events: Events;
  readonly store: DesiredStore;
  readonly router: Router;
  readonly rpc: Rpc;
  readonly engine: EngineSource;
  readonly damage: Pick<Damage, "check">;
  readonly now: () => number;
  readonly logger: { warn(fields: object, message: string): void; info(message: string): void };
}): Requests {
  const { settings, events, store, rpc, engine, logger } = options;
  const facts = createCachedFacts(events, () => store.current().document);
  const scheduler = createScheduler({
    router: options.router,
    gate: rpc.gate,
    limits: {
      queueLimit: settings.queueLimit,
      drainMs: settings.drainMs,
      loadTimeoutMs: settings.loadTimeoutMs,
      routerWaitMs: settings.startTimeoutMs,
      keepAliveMs: settings.keepAliveMs ?? Number.POSITIVE_INFINITY,
    },
    modelsMax: () => (rpc.takesOneModel() ? 1 : settings.modelsMax),
    ...facts,
    engineProblem: () => {
      const problem = engine.problem();
      return problem && new GatewayError("engine_missing", problem.message);
    },
    onUse: (id) => events.emit({ type: "modelInUse", id }),
    onIdle: (id) => events.emit({ type: "modelIdle", id }),
    onLoadFailed: (id) => {
      void checkFiles(facts.modelOf(id));
      events.emit({ type: "loadFailed", id });
    },
    onDrained: (model, cut) => events.emit({ type: "modelDrained", model: facts.idOf(model), cut }),
    warn: warnTo(logger),
    now: options.now,
  });
  for (const type of ["changed", "documentChanged", "modelsListed", "passed"] as const)
    events.on(type, scheduler.observe);
  events.on("routerChanged", ({ event }) => (event ? scheduler.progressed(event.model) : scheduler.observe()));
  events.on("retried", () => scheduler.resetBackoff());

  /** A model that fails to load may be damaged; the next pass fetches it again then. */
  async function checkFiles(model: CachedModel | undefined): Promise<void> {
    try {
      if (!model || !(await options.damage.check(model))) return;
      logger.warn({ model: model.id }, "model file is damaged");
      events.emit({ type: "changed", what: "damaged file" });
    } catch (error) {
      if (toGatewayError(error).code === "cancelled") return;
      logger.warn({ model: model?.id, error: String(error) }, "model files were not checked");
    }
  }

  // What could not be loaded while the model cache was away may be loaded once it is back.
  let wasAway = false;
  events.on("passed", ({ pass: { observed } }) => {
    const { cache } = observed;
    if (cache.state === "unknown" && !wasAway) logger.warn({ why: cache.why }, "the model cache is away");
    if (cache.state === "known" && wasAway) {
      logger.info("the model cache is back");
      scheduler.resetBackoff();
    }
    wasAway = cache.state === "unknown";
  });

  return {
    scheduler,
    facts,
    met: () => ({ failing: scheduler.failing(), cuts: scheduler.cuts(), drainMs: settings.drainMs }),
    underWay: () => ({
      inFlight: new Map([...scheduler.inFlight()].map(([id, count]) => [facts.idOf(id), count])),
      waiting: scheduler.waiting().map((entry) => ({ ...entry, model: facts.idOf(entry.model) })),
    }),
  };
}
