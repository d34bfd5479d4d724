// The parts between the document and the machine, wired: observers, loop, executor, router, scheduler, status.
// Starts nothing; src/app/gateway.ts does.
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { FastifyBaseLogger } from "fastify";
import { createRepoTurns } from "../cache/removal/repo-turns.ts";
import type { Damage } from "../cache/scan/damage.ts";
import { cacheNow } from "../cache/scan/scan.ts";
import { steadyNow } from "../core/steady.ts";
import type { Desired } from "../desired/document/document.ts";
import type { SourceStatus } from "../desired/document/parse.ts";
import { unreadSource } from "../desired/file-source.ts";
import type { InstallProgress } from "../engines/install/install.ts";
import { createEngineSource, type EngineSource } from "../engines/llama/engine-source.ts";
import { createRouter, isProgress, type Router } from "../engines/llama/router.ts";
import { type Collector, createCollector } from "../execute/cache-gc.ts";
import { createExecutor, type Executor } from "../execute/executor.ts";
import { modelHandlers } from "../execute/model-actions.ts";
import { presetHandlers } from "../execute/preset-actions.ts";
import { routerHandlers } from "../execute/router-actions.ts";
import type { SpeechStore } from "../execute/speech-files.ts";
import { createHubClient, type HubClient } from "../hub/client.ts";
import { readDocumentFiles } from "../observe/document-files.ts";
import { createObserver, routerInputs } from "../observe/observe.ts";
import { createLoop, type Loop, type Pass } from "../reconcile/loop.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import { type Settings, version } from "../settings/settings.ts";
import type { StateLock } from "../state/lock.ts";
import type { StatusInput } from "../status/conditions.ts";
import { createJournal, type Journal } from "../status/journal.ts";
import { actionBody, type StatusReport, statusReport } from "../status/report.ts";
import type { CachedFacts } from "./cached-facts.ts";
import { createStatusTracker } from "./condition-tracker.ts";
import { type Kept, openCache, openKept } from "./kept.ts";
import { noteSeen, tellDisabled, tellOutcome, tellRouterEvent } from "./outcomes.ts";
import { createRequests } from "./requests.ts";
import { createRpc, type Rpc } from "./rpc.ts";
import { createSpeech, openSpeechStorage, type Speech } from "./speech.ts";

export interface Core extends Kept {
  readonly presetPath: string;
  readonly journal: Journal;
  readonly hub: HubClient;
  readonly router: Router;
  readonly engine: EngineSource;
  readonly scheduler: Scheduler;
  readonly facts: CachedFacts;
  readonly executor: Executor;
  readonly loop: Loop;
  readonly speech: Speech;
  readonly collector: Collector;
  readonly speechFiles: SpeechStore;
  readonly rpc: Rpc;
  readonly damage: Damage;
  /** Somebody asks to try again what was given up; and says that a model cache which is missing is gone for good. */
  retry(cacheGone: boolean): void;
  /** The file source found something. */
  noteSource(status: SourceStatus): void;
  /** `stoppingSince`: ms; null where it does not stop. */
  status(stoppingSince: number | null): StatusReport;
}

export interface CoreOptions {
  readonly settings: Settings;
  readonly logger: FastifyBaseLogger;
  readonly lock: Pick<StateLock, "id" | "hold">;
  readonly onInstallProgress: (progress: InstallProgress) => void;
}

export async function createCore({ settings, logger, lock, onInstallProgress }: CoreOptions): Promise<Core> {
  const { stateDir, cacheDir, configPath, environment } = settings;
  // For durations; what people read, and what files remember, goes by the wall clock.
  const now = steadyNow;
  const startedAt = Date.now();
  const warn = (message: string, fields: object): void => logger.warn(fields, message);
  const presetPath = join(stateDir, "router.preset.ini");

  const journal = createJournal(Date.now, randomBytes(4).toString("hex"));
  const kept = await openKept({ settings, hold: lock.hold, logger, onChange: () => loop.wake("state folder") });
  const { stateFolder, store, inventory, lastUsed, gatewayId } = kept;
  const hub = createHubClient({ endpoint: settings.hubEndpoint, token: settings.hubToken, environment });
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
      if (event) scheduler.progressed(event.model);
      else scheduler.observe();
      rpc.workers.review();
      if (event) tellRouterEvent(event, journal);
      if (!event || !isProgress(event)) loop.wake(event ? "router event" : "router state");
    },
    onList: () => scheduler.observe(),
    warn,
  });
  const engine = createEngineSource({
    explicit: settings.llamaServer,
    enginesDir: join(stateDir, "engines"),
    installCommand: settings.command("engine", "install", "llama"),
    environment,
    install: settings.installEngine,
    rehome: true,
    onProgress: onInstallProgress,
    onChange: () => {
      rpc.engineChanged();
      loop.wake("engine");
    },
  });
  const rpc = createRpc({
    settings,
    store,
    router,
    pass: () => loop.last(),
    isAnswering: () => scheduler.inFlight().size > 0,
    binary: engine.path,
    isUnderWay: (key) => executor.running().some(({ action }) => action.key === key),
    onChange: () => {
      scheduler.observe();
      loop.wake("workers");
    },
    now,
    warn,
  });
  const { scanner, presence, damage } = openCache(cacheDir, inventory);
  const requests = createRequests({
    settings,
    store,
    router,
    rpc,
    engine,
    loop: () => loop,
    damage,
    journal,
    lastUsed,
    now,
    logger,
  });
  const { scheduler } = requests;
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
  const cachedModels = async () => (await cacheNow(scanner)).models;
  const inputs = () => routerInputs(presetPath, scanner);
  const transfers = { cacheDir, gateway: gatewayId, hub, turns };
  const stored = { ...transfers, inventory, now: Date.now, cachedModels };
  const desired = (): Desired => store.current().document;
  const speechStorage = await openSpeechStorage({
    ...transfers,
    settings,
    speech,
    stateFiles: stateFolder,
    desired,
    now: Date.now,
    warn,
  });
  const collector = speechStorage.files.collecting(createCollector({ ...stored, desired, router: router.snapshot }));
  const executor = createExecutor({
    handlers: {
      ...modelHandlers({
        ...stored,
        configPath,
        router,
        drainer: scheduler,
        removals: {
          get: (id) => store.current().document.removals.find((removal) => removal.id === id),
          note: store.noteRemoval,
          end: store.endRemoval,
        },
        isWanted: (id) => desired().models.some((model) => model.id === id),
        onVerified: damage.forget,
      }),
      "cache.gc": collector.handler,
      ...presetHandlers(presetPath, stateFolder.write, (lines) => tellDisabled(lines, warn, journal)),
      ...routerHandlers({ router, drainer: scheduler, binary: engine.path, inputs }),
      ...speechStorage.handlers,
    },
    transfers: settings.transfers,
    now,
    onStarted: (action) => journal.record("action.started", actionBody(action)),
    onProgress: (action, progress) => {
      loop.sizes.progressed(action, progress);
      journal.record("action.progress", { key: action.key, kind: action.kind, ...progress }, `action ${action.key}`);
    },
    onSettled: (outcome) => {
      loop.settled(outcome);
      tellOutcome(outcome, loop.backoff(), logger, journal);
    },
  });
  const observer = createObserver({
    scanner,
    cacheDir,
    presetPath,
    configPath,
    desired,
    router,
    inventory: inventory.entries,
    engine,
    speech: speech.observe,
    documentFiles: () => readDocumentFiles(configPath, desired()),
    workers: rpc.workers,
    onNewEngine: () => loop.retry(),
  });
  const tracker = createStatusTracker({
    now: Date.now,
    usedBy: rpc.workers.usedBy,
    onChange: (subject, condition) => journal.record("condition", { subject, ...condition }),
  });
  let source = unreadSource(configPath);
  const loop = createLoop({
    desired: store.current,
    observer,
    executor: () => executor,
    resyncMs: settings.resyncMs,
    silenceLimitMs: settings.silenceLimitMs,
    now,
    random: Math.random,
    onRetry: () => scheduler.resetBackoff(),
    onPass: (pass) => {
      requests.noteCache(pass.observed.cache);
      scheduler.observe();
      tracker.update(pass, statusInput(pass));
      rpc.notePass(pass);
      void noteSeen(inventory, pass, warn);
    },
    onError: (error) => logger.error({ err: error }, "a look at the world failed"),
  });
  store.onChange((state) => {
    journal.record("document", { generation: state.generation });
    scheduler.observe();
    loop.wake("document");
  });

  function statusInput({ desired, observed, plan, running }: Pass): StatusInput {
    return {
      desired: desired.document,
      observed,
      plan,
      source,
      running: running.map(({ action: { kind, key, message }, startedAt }) => ({ kind, key, message, startedAt })),
      backoff: loop.backoff(),
      hub: hub.reachability(),
      engineProblem: engine.problem(),
      state: stateFolder.report(),
      requests: requests.met(),
      command: settings.command,
    };
  }

  return {
    ...kept,
    presetPath,
    journal,
    hub,
    router,
    engine,
    scheduler,
    facts: requests.facts,
    executor,
    loop,
    speech,
    collector,
    speechFiles: speechStorage.files,
    rpc,
    damage,
    retry: (cacheGone) => {
      if (cacheGone) presence.believe();
      loop.retry();
    },
    noteSource: (next) => {
      source = next;
      // What a client reads of the source, beside the conditions, is the newest: they must not be of the one before.
      const pass = loop.last();
      if (pass) tracker.update(pass, statusInput(pass));
      if (next.valid) logger.info({ path: next.path }, "gateway.yaml is applied");
      else warn("gateway.yaml is not applied", { reason: next.reason, problem: next.message });
      journal.record("source", next);
      loop.wake("source");
    },
    status: (stoppingSince) =>
      statusReport({
        version,
        id: lock.id,
        startedAt,
        stoppingSince,
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
        ...requests.underWay(),
      }),
  };
}
