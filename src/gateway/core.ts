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
import { createExecutor, type Executor, type Outcome } from "../execute/executor.ts";
import { type Inventory, openInventory } from "../execute/inventory.ts";
import { modelHandlers } from "../execute/model-actions.ts";
import { presetHandlers } from "../execute/preset-actions.ts";
import { routerHandlers } from "../execute/router-actions.ts";
import { speechHandlers } from "../execute/speech-actions.ts";
import { type Admission, createAdmission } from "../http/admission.ts";
import { createHubClient, type HubClient } from "../hub/client.ts";
import { createSpeechLists, type SpeechLists } from "../hub/speech-files.ts";
import { createCacheScanner } from "../observe/cache.ts";
import { createObserver, readPreset } from "../observe/observe.ts";
import type { CacheSnapshot } from "../plan/observed.ts";
import { createLoop, type Loop, type Pass } from "../reconcile/loop.ts";
import { type Settings, version } from "../settings.ts";
import type { StatusInput } from "../status/conditions.ts";
import { createJournal, type Journal } from "../status/journal.ts";
import { actionBody, type StatusReport, statusReport } from "../status/report.ts";
import { createStatusTracker } from "../status/tracker.ts";
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
  readonly speechLists: SpeechLists;
  /** The file source found something. */
  noteSource(status: SourceStatus): void;
  status(stopping: boolean): StatusReport;
}

export interface CoreOptions {
  readonly settings: Settings;
  readonly logger: FastifyBaseLogger;
  readonly onInstallProgress: (progress: InstallProgress) => void;
}

/** How old the official lists of voices and transcription models may be. */
const listsFreshMs = 3_600_000;

export async function createCore({ settings, logger, onInstallProgress }: CoreOptions): Promise<Core> {
  const { stateDir, cacheDir, configPath, environment } = settings;
  const now = Date.now;
  const startedAt = now();
  const warn = (message: string, fields: object): void => logger.warn(fields, message);
  const presetPath = join(stateDir, "router.preset.ini");

  const journal = createJournal(now);
  const store = await openDesiredStore({ stateDir, now, warn });
  const inventory = await openInventory(stateDir, warn);
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
      admission.poke();
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
  const admission = createAdmission({
    router,
    // A worker serves one model at a time: a second one would wait for it for ever.
    modelsMax: () => (store.current().document.rpc.mode === "rpc" ? 1 : settings.modelsMax),
    drainMs: settings.drainMs,
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
  const scanner = createCacheScanner(cacheDir);
  const speech = createSpeech({
    settings,
    document: () => store.current().document,
    now,
    onOutput: (name, text) => logger.trace({ engine: name }, text.trimEnd()),
    onChange: () => loop.wake("speech"),
    onFound: () => loop.retry(),
    warn,
  });
  const speechLists = createSpeechLists({ client: hub, stateDir, freshMs: listsFreshMs, now });
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
        now,
        cachedModels: async () => (await cacheNow()).models,
      }),
      ...presetHandlers(presetPath, (lines) => {
        warn("lines of router.preset.ini that the router cannot read are comments now", { lines });
        journal.record("preset", { disabled: lines });
      }),
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
      ...speechHandlers({ cacheDir, voicesDir: speech.voicesDir, hub, lists: speechLists, engines: speech }),
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
    onNewEngine: () => loop.retry(),
  });
  const tracker = createStatusTracker({
    now,
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
    speechLists,
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
        running: executor.running(),
        inFlight: admission.inFlight(),
      }),
  };
}

function tellOutcome({ action, ms, error }: Outcome, logger: FastifyBaseLogger, journal: Journal): void {
  const fields = { what: action.message, kind: action.kind, key: action.key, reason: action.reason, ms };
  if (error) {
    logger.warn({ ...fields, code: error.code, error: error.message }, "an action failed");
    journal.record("action.failed", { ...actionBody(action), code: error.code, message: error.message });
  } else {
    logger.info(fields, "an action is done");
    journal.record("action.finished", { ...actionBody(action), ms });
  }
}

/** What the document once marked `keep` stays when it leaves the list. */
async function noteKept(
  inventory: Inventory,
  { desired: { document } }: Pass,
  warn: (message: string, fields: object) => void,
): Promise<void> {
  const named = (keep: boolean): Set<string> =>
    new Set(document.models.filter((model) => (model.keep ?? false) === keep).map((model) => model.id));
  try {
    await inventory.noteKept(named(true), named(false));
  } catch (error) {
    warn("the inventory could not be written", { error: String(error) });
  }
}
