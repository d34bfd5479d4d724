// The parts between the document and the machine, wired: observers, loop, executor, router, admission, status.
// Starts nothing; src/gateway.ts does.
import { join } from "node:path";
import type { FastifyBaseLogger } from "fastify";
import { GatewayError } from "../core/errors.ts";
import type { SourceStatus } from "../desired/parse.ts";
import { type DesiredStore, openDesiredStore } from "../desired/store.ts";
import { createEngineSource, type EngineSource } from "../engines/engine-source.ts";
import type { InstallProgress } from "../engines/install/install.ts";
import { createRouter, isProgress, type Router } from "../engines/router.ts";
import { type Collector, createCollector } from "../execute/cache-gc.ts";
import { createExecutor, type Executor } from "../execute/executor.ts";
import { type Inventory, openInventory } from "../execute/inventory.ts";
import { type LastUsed, openLastUsed } from "../execute/last-used.ts";
import { modelHandlers } from "../execute/model-actions.ts";
import { presetHandlers } from "../execute/preset-actions.ts";
import { createRepoTurns } from "../execute/repo-turns.ts";
import { routerHandlers } from "../execute/router-actions.ts";
import { speechHandlers } from "../execute/speech-actions.ts";
import { type Admission, createAdmission } from "../http/admission.ts";
import { createChanges } from "../http/changes.ts";
import { createHubClient, type HubClient } from "../hub/client.ts";
import { createCacheScanner } from "../observe/cache.ts";
import { createObserver, readPreset } from "../observe/observe.ts";
import type { CacheSnapshot } from "../plan/observed.ts";
import { createLoop, type Loop, type Pass } from "../reconcile/loop.ts";
import { type Settings, version } from "../settings.ts";
import type { StatusInput } from "../status/conditions.ts";
import { createJournal, type Journal } from "../status/journal.ts";
import { actionBody, type StatusReport, statusReport } from "../status/report.ts";
import { createStatusTracker } from "../status/tracker.ts";
import { noteKept, tellDisabled, tellOutcome } from "./outcomes.ts";
import { createRpc, type Rpc } from "./rpc.ts";
import { createSpeech, type Speech } from "./speech.ts";

export interface Core {
  readonly presetPath: string;
  readonly journal: Journal;
  readonly store: DesiredStore;
  readonly hub: HubClient;
  readonly router: Router;
  readonly engine: EngineSource;
  readonly admission: Admission;
  readonly executor: Executor;
  readonly loop: Loop;
  readonly speech: Speech;
  readonly inventory: Inventory;
  readonly collector: Collector;
  readonly lastUsed: LastUsed;
  readonly rpc: Rpc;
  /** The file source found something. */
  noteSource(status: SourceStatus): void;
  status(stopping: boolean): StatusReport;
}

export interface CoreOptions {
  readonly settings: Settings;
  readonly logger: FastifyBaseLogger;
  readonly onInstallProgress: (progress: InstallProgress) => void;
}

export async function createCore({ settings, logger, onInstallProgress }: CoreOptions): Promise<Core> {
  const { stateDir, cacheDir, configPath, environment } = settings;
  const now = Date.now;
  const startedAt = now();
  const warn = (message: string, fields: object): void => logger.warn(fields, message);
  /** When the router last told of each model. */
  const toldOf = new Map<string, number>();
  const presetPath = join(stateDir, "router.preset.ini");

  const journal = createJournal(now);
  const store = await openDesiredStore({ stateDir, now, warn });
  const inventory = await openInventory(stateDir, warn);
  const lastUsed = await openLastUsed({ stateDir, now, warn });
  const hub = createHubClient({
    endpoint: settings.hubEndpoint,
    token: settings.hubToken,
    environment: settings.environment,
  });
  const router = createRouter({
    presetPath,
    stateDir,
    cacheDir,
    environment,
    startTimeoutMs: settings.startTimeoutMs,
    stopGraceMs: settings.stopGraceMs,
    // The router answers a reload once the last model it ends is gone.
    reloadTimeoutMs: settings.startTimeoutMs,
    pingMs: Math.max(250, settings.silenceLimitMs / 4),
    now,
    onOutput: (text) => logger.trace({ engine: "llama-server" }, text.trimEnd()),
    onChange: (event) => {
      if (event) toldOf.set(event.model, now());
      admission.poke();
      rpc.workers.review();
      if (event) journal.record("model", { model: event.model, event: event.event, data: event.data ?? null });
      if (!event || !isProgress(event)) loop.wake(event ? "router event" : "router state");
    },
    warn,
  });
  const engine = createEngineSource({
    explicit: settings.llamaServer,
    enginesDir: join(stateDir, "engines"),
    environment,
    install: settings.installEngine,
    onProgress: onInstallProgress,
    onChange: () => loop.wake("engine"),
  });
  const changes = createChanges();
  const rpc = createRpc({
    settings,
    store,
    router,
    changes,
    pass: () => loop.last(),
    isAnswering: () => admission.inFlight().size > 0,
    binary: engine.path,
    isUnderWay: (key) => executor.running().some(({ action }) => action.key === key),
    onChange: () => loop.wake("workers"),
    now,
    warn,
  });
  const admission = createAdmission({
    router,
    changes,
    gate: rpc.gate,
    modelsMax: () => (rpc.takesOneModel() ? 1 : settings.modelsMax),
    drainMs: settings.drainMs,
    progressAt: (id) => toldOf.get(id) ?? 0,
    warn,
    loadTimeoutMs: settings.loadTimeoutMs,
    isCached: (id) => {
      const cache = loop.last()?.observed.cache;
      return cache?.state !== "known" || cache.value.models.some((model) => model.upstreamId === id);
    },
    routerWaitMs: settings.startTimeoutMs,
    engineProblem: () => {
      const problem = engine.problem();
      return problem && new GatewayError("engine_missing", problem.message);
    },
    now,
  });
  admission.onUse({ begun: ({ id }) => lastUsed.note(id), over: lastUsed.note });
  admission.onUse({ begun: () => undefined, over: rpc.workers.settled });
  const scanner = createCacheScanner(cacheDir);
  const speech = createSpeech({
    settings,
    hub,
    document: () => store.current().document,
    now,
    onOutput: (name, text) => logger.trace({ engine: name }, text.trimEnd()),
    onChange: () => loop.wake("speech"),
    onFound: () => loop.retry(),
    warn,
  });
  const turns = createRepoTurns();
  const cachedModels = async (): Promise<CacheSnapshot["models"]> => (await cacheNow()).models;
  const collector = createCollector({
    cacheDir,
    inventory,
    desired: () => store.current().document,
    router: router.snapshot,
    turns,
    now,
    cachedModels,
  });
  const executor = createExecutor({
    handlers: {
      ...modelHandlers({
        cacheDir,
        configPath,
        hub,
        inventory,
        router,
        drainer: admission,
        removals: {
          get: (id) => store.current().document.removals.find((removal) => removal.id === id),
          note: store.noteRemoval,
          end: store.endRemoval,
        },
        turns,
        now,
        cachedModels,
      }),
      "cache.gc": collector.handler,
      ...presetHandlers(presetPath, (lines) => tellDisabled(lines, warn, journal)),
      ...routerHandlers({
        router,
        drainer: admission,
        binary: engine.path,
        inputs: async () => {
          const preset = await readPreset(presetPath);
          if (preset.state === "unknown") throw new GatewayError("preset_unwritable", preset.why);
          return { preset: preset.value.text, cache: (await cacheNow()).signature };
        },
      }),
      ...speechHandlers({ cacheDir, voicesDir: speech.voicesDir, hub, lists: speech.lists, engines: speech, turns }),
    },
    transfers: settings.transfers,
    now,
    onStarted: (action) => journal.record("action.started", actionBody(action)),
    onProgress: (action, progress) =>
      journal.record("action.progress", { key: action.key, kind: action.kind, ...progress }),
    onSettled: (outcome) => {
      tellOutcome(outcome, logger, journal);
      loop.settled(outcome);
    },
  });
  const observer = createObserver({
    scanner,
    cacheDir,
    presetPath,
    router,
    inventory: inventory.entries,
    engine,
    speech: speech.observe,
    workers: rpc.workers,
    onNewEngine: () => loop.retry(),
  });
  const tracker = createStatusTracker({
    now,
    usedBy: rpc.workers.usedBy,
    onChange: (subject, condition) => journal.record("condition", { subject, ...condition }),
  });
  let source: SourceStatus = {
    path: configPath,
    valid: false,
    reason: "Unread",
    message: "not read yet",
    problems: [],
  };
  const loop = createLoop({
    desired: store.current,
    observer,
    executor: () => executor,
    resyncMs: settings.resyncMs,
    silenceLimitMs: settings.silenceLimitMs,
    now,
    random: Math.random,
    onPass: (pass) => {
      tracker.update(pass, statusInput(pass));
      rpc.notePass(pass);
      void noteKept(inventory, pass, warn);
    },
    onError: (error) => logger.error({ err: error }, "a look at the world failed"),
  });
  store.onChange((state) => {
    journal.record("document", { generation: state.generation });
    loop.wake("document");
  });

  async function cacheNow(): Promise<CacheSnapshot> {
    const cache = await scanner.scan();
    if (cache.state === "unknown") throw new GatewayError("cache_unwritable", cache.why);
    return cache.value;
  }

  function statusInput({ desired, observed, plan, running }: Pass): StatusInput {
    return {
      desired: desired.document,
      observed,
      plan,
      source,
      running: running.map(({ action }) => ({ kind: action.kind, key: action.key, message: action.message })),
      backoff: loop.backoff(),
      hub: hub.reachability(),
      engineProblem: engine.problem(),
    };
  }

  return {
    presetPath,
    journal,
    store,
    hub,
    router,
    engine,
    admission,
    executor,
    loop,
    speech,
    inventory,
    collector,
    lastUsed,
    rpc,
    noteSource: (next) => {
      source = next;
      if (next.valid) logger.info({ path: next.path }, "gateway.yaml is applied");
      else warn("gateway.yaml is not applied", { reason: next.reason, problem: next.message });
      journal.record("source", next);
      loop.wake("source");
    },
    status: (stopping) =>
      statusReport({
        version,
        startedAt,
        stopping,
        desired: store.current(),
        pass: loop.last(),
        router: router.snapshot(),
        binary: engine.path(),
        speech: speech.report(),
        source,
        conditions: tracker.conditions(),
        models: tracker.models(),
        workers: rpc.statuses(tracker.workers()),
        running: executor.running(),
        inFlight: admission.inFlight(),
      }),
  };
}
