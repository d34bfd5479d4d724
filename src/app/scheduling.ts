// The scheduler, wired to the newest pass and the document. Starts nothing.
import { GatewayError, toGatewayError } from "../core/errors.ts";
import { steadyNow } from "../core/steady.ts";
import { askFirstToken } from "../engines/llama/first-token.ts";
import type { LoadedModels } from "../metrics/load.ts";
import { findCached, findRouted } from "../plan/find-model.ts";
import type { CachedModel } from "../plan/observed.ts";
import { modelRules } from "../scheduler/model-rules.ts";
import { createScheduler } from "../scheduler/scheduler.ts";
import type { Base } from "./events.ts";
import { followLoads } from "./loads.ts";
import type { Machine } from "./machine.ts";
import type { MemoryFacts } from "./memory.ts";
import type { Rpc } from "./rpc.ts";
import type { State } from "./state.ts";

export type Scheduling = ReturnType<typeof createScheduling>;

export function createScheduling(parts: Base & State & Machine & { readonly rpc: Rpc; readonly memory: MemoryFacts }) {
  const { settings, logger, warn, events, store, router, rpc, engine, damage, memory, logs } = parts;
  /** While the cache cannot be read, its last known content is the best there is. */
  let models: readonly CachedModel[] = [];
  let isKnown = false;
  /** Of the newest pass; -1: none yet. */
  let generation = -1;
  let isPresetDue = false;
  /** By the router's id. */
  const modelOf = (id: string): CachedModel | undefined => findRouted(models, id);
  const idOf = (id: string): string => modelOf(id)?.id ?? id;

  const modelsMax = (): number => (rpc.takesOneModel() ? 1 : settings.modelsMax);
  const isPinned = (upstreamId: string): boolean =>
    store
      .current()
      .document.models.some(({ id, pinned }) => pinned === true && findCached(models, id)?.upstreamId === upstreamId);

  const loads = followLoads(parts, modelOf);
  const scheduler = createScheduler({
    router,
    gate: rpc.gate,
    limits: {
      queueLimit: settings.queueLimit,
      drainMs: settings.drainMs,
      loadTimeoutMs: settings.loadTimeoutMs,
      routerWaitMs: settings.startTimeoutMs,
      keepAliveMs: settings.keepAliveMs ?? Number.POSITIVE_INFINITY,
    },
    modelsMax,
    isBehind: () => isPresetDue || (generation >= 0 && generation !== store.current().generation),
    isCached: (id) => !isKnown || modelOf(id) !== undefined,
    rules: modelRules(
      () => store.current().document,
      () => models,
    ),
    isPinned,
    memory: memory.models,
    engineProblem: () => {
      const problem = engine.problem();
      return problem && new GatewayError("engine_missing", problem.message);
    },
    onUse: (id) => events.emit("modelInUse", id),
    onIdle: (id) => events.emit("modelIdle", id),
    askFirstToken,
    outputSince: (id, since) => logs.readLast(id, steadyNow() - since),
    ...loads,
    onLoadVerified: (id) => {
      void measure(id);
      loads.onLoadVerified(id);
    },
    onLoadFailed: (id) => {
      void checkFiles(modelOf(id));
      events.emit("loadFailed", id);
    },
    onDrained: (id, cut) => events.emit("modelDrained", idOf(id), cut),
    warn,
    now: steadyNow,
  });

  /** What it took is what it needs the next time. */
  async function measure(id: string): Promise<void> {
    await memory.models.measure(id).catch((error: unknown) => {
      warn("what a model takes of memory was not measured", { model: idOf(id), error: String(error) });
    });
    scheduler.observe();
  }

  /** A model that fails to load may be damaged; the next pass fetches it again then. */
  async function checkFiles(model: CachedModel | undefined): Promise<void> {
    try {
      if (!model || !(await damage.check(model))) return;
      warn("model file is damaged", { model: model.id });
      events.emit("changed");
    } catch (error) {
      if (toGatewayError(error).code === "cancelled") return;
      warn("model files were not checked", { model: model?.id, error: String(error) });
    }
  }

  let wasAway = false;
  events.on("passed", ({ desired, plan, observed: { cache } }) => {
    generation = desired.generation;
    // Edits that come one after another are awaited before they are written.
    const settling = plan.held.filter(({ why }) => why === "settling").map(({ action }) => action);
    isPresetDue = [...plan.actions, ...settling].some(
      ({ kind }) => kind === "preset.write" || kind === "router.reload",
    );
    isKnown = cache.state === "known";
    if (cache.state === "known") models = cache.value.models;
    else if (!wasAway) warn("the model cache is away", { why: cache.why });
    if (isKnown && wasAway) {
      logger.info("the model cache is back");
      // Models that could not be loaded without it may load now.
      scheduler.resetBackoff();
    }
    wasAway = !isKnown;
  });
  events.on("actionSettled", ({ action }) => {
    if (action.kind === "router.reload") isPresetDue = false;
  });
  for (const type of ["changed", "documentChanged", "modelsListed", "passed", "actionSettled", "memoryKnown"] as const)
    events.on(type, scheduler.observe);
  events.on("routerChanged", (event) => (event ? scheduler.progressed(event.model) : scheduler.observe()));
  events.on("retried", () => scheduler.resetBackoff());

  return {
    scheduler,
    /** The model's own id, by the router's. */
    idOf,
    loaded: (): LoadedModels => ({
      models: router.instances.list().map(({ id, slots }) => ({ id: idOf(id), slots, isPinned: isPinned(id) })),
      modelSlots: modelsMax(),
    }),
    /** Requests under way and waiting, by the models' own ids. */
    requests: () => ({
      inFlight: new Map([...scheduler.inFlight()].map(([id, count]) => [idOf(id), count])),
      waiting: scheduler.waiting().map((entry) => ({ ...entry, model: idOf(entry.model) })),
    }),
  };
}
