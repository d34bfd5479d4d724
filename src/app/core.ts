// The parts between the document and the machine, wired from the bottom up: state, engines, scheduler, executor, loop, status.
// What a part reports to those above it goes through the events. Starts nothing; src/app/gateway.ts does.
import { randomBytes } from "node:crypto";
import { join } from "node:path";
import type { FastifyBaseLogger } from "fastify";
import type { Damage } from "../cache/scan/damage.ts";
import { steadyNow } from "../core/steady.ts";
import type { InstallProgress } from "../engines/install/install.ts";
import { createEngineSource, type EngineSource } from "../engines/llama/engine-source.ts";
import { createRouter, isProgress, type Router } from "../engines/llama/router.ts";
import { createHubClient, type HubClient } from "../hub/client.ts";
import { createObserver } from "../observe/observe.ts";
import { createLoop, type Loop } from "../reconcile/loop.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import type { Settings } from "../settings/settings.ts";
import type { StateLock } from "../state/lock.ts";
import { createJournal, type Journal } from "../status/journal.ts";
import { type Actions, createActions } from "./actions.ts";
import type { CachedFacts } from "./cached-facts.ts";
import { createEvents, type Events } from "./events.ts";
import { type Kept, openCache, openKept } from "./kept.ts";
import { writeDown } from "./outcomes.ts";
import { createReports, type ReportStatus } from "./reports.ts";
import { createRequests } from "./requests.ts";
import { createRpc, type Rpc } from "./rpc.ts";
import { createSpeech, type Speech } from "./speech.ts";
import { type Warn, warnTo } from "./warn.ts";

export interface Core extends Kept, Actions {
  readonly events: Events;
  readonly presetPath: string;
  readonly journal: Journal;
  readonly hub: HubClient;
  readonly router: Router;
  readonly engine: EngineSource;
  readonly scheduler: Scheduler;
  readonly facts: CachedFacts;
  readonly loop: Loop;
  readonly speech: Speech;
  readonly rpc: Rpc;
  readonly damage: Damage;
  /** Retries what has failed; `cacheGone`: a model cache that is missing is gone for good. */
  retry(cacheGone: boolean): void;
  readonly status: ReportStatus;
}

export interface CoreOptions {
  readonly settings: Settings;
  readonly logger: FastifyBaseLogger;
  readonly lock: Pick<StateLock, "id" | "hold">;
  readonly onInstallProgress: (progress: InstallProgress) => void;
}

export async function createCore({ settings, logger, lock, onInstallProgress }: CoreOptions): Promise<Core> {
  const { stateDir, cacheDir, configPath, environment } = settings;
  const events = createEvents();
  const presetPath = join(stateDir, "router.preset.ini");
  // For durations; what people read, and what files remember, goes by the wall clock.
  const common = { settings, events, presetPath, now: steadyNow, warn: warnTo(logger) };

  const journal = createJournal(Date.now, randomBytes(4).toString("hex"));
  const kept = await openKept({ settings, hold: lock.hold, logger, events });
  const { store, inventory } = kept;
  const hub = createHubClient({ endpoint: settings.hubEndpoint, token: settings.hubToken, environment });
  const router = routerOf(common, logger);
  const engine = createEngineSource({
    explicit: settings.llamaServer,
    enginesDir: join(stateDir, "engines"),
    installCommand: settings.command("engine", "install", "llama"),
    environment,
    install: settings.installEngine,
    rehome: true,
    onProgress: onInstallProgress,
    onChange: () => events.emit({ type: "changed", what: "engine" }),
  });
  const rpc = createRpc({ ...common, store, router });
  const { scanner, presence, damage } = openCache(cacheDir, inventory);
  const requests = createRequests({ ...common, store, router, rpc, engine, damage, logger });
  const { scheduler } = requests;
  const speech = createSpeech({
    ...common,
    hub,
    document: () => store.current().document,
    onOutput: (name, text) => logger.trace({ engine: name }, text.trimEnd()),
  });
  const actions = createActions({ ...common, kept, hub, router, engine, scheduler, speech, scanner, damage });
  const observer = createObserver({
    scanner,
    cacheDir,
    presetPath,
    configPath,
    desired: () => store.current().document,
    router,
    inventory: inventory.entries,
    engine,
    speech: speech.observe,
    workers: rpc.workers,
    onNewEngine: () => events.emit({ type: "engineFound" }),
  });
  const loop = createLoop({
    desired: store.current,
    observer,
    executor: actions.executor,
    resyncMs: settings.resyncMs,
    silenceLimitMs: settings.silenceLimitMs,
    now: steadyNow,
    random: Math.random,
    onRetry: () => events.emit({ type: "retried" }),
    onPass: (pass) => events.emit({ type: "passed", pass }),
    onError: (error) => logger.error({ err: error }, "reconcile pass failed"),
  });
  const status = createReports({
    settings,
    events,
    lock,
    kept,
    hub,
    router,
    engine,
    requests,
    rpc,
    speech,
    executor: actions.executor,
    loop,
  });
  wakeLoop(events, loop);
  events.on("modelInUse", ({ id }) => kept.lastUsed.note(id));
  events.on("modelIdle", ({ id }) => kept.lastUsed.note(id));
  writeDown({ events, logger, journal, inventory, drainMs: settings.drainMs, backoff: loop.backoff });

  return {
    ...kept,
    ...actions,
    events,
    presetPath,
    journal,
    hub,
    router,
    engine,
    scheduler,
    facts: requests.facts,
    loop,
    speech,
    rpc,
    damage,
    retry: (cacheGone) => {
      if (cacheGone) presence.believe();
      loop.retry();
    },
    status,
  };
}

function routerOf(
  {
    settings,
    events,
    presetPath,
    now,
    warn,
  }: {
    readonly settings: Settings;
    readonly events: Events;
    readonly presetPath: string;
    readonly now: () => number;
    readonly warn: Warn;
  },
  logger: FastifyBaseLogger,
): Router {
  return createRouter({
    presetPath,
    stateDir: settings.stateDir,
    cacheDir: settings.cacheDir,
    environment: settings.environment,
    startTimeoutMs: settings.startTimeoutMs,
    stopGraceMs: settings.stopGraceMs,
    // The router answers a reload once the last model it ends is gone.
    reloadTimeoutMs: settings.startTimeoutMs,
    pingMs: Math.max(250, settings.silenceLimitMs / 4),
    now,
    onOutput: (text) => logger.trace({ engine: "llama-server" }, text.trimEnd()),
    onChange: (event) => events.emit({ type: "routerChanged", event: event ?? null }),
    onList: () => events.emit({ type: "modelsListed" }),
    warn,
  });
}

/** What the loop takes note of. */
function wakeLoop(events: Events, loop: Loop): void {
  events.on("changed", ({ what }) => loop.wake(what));
  events.on("documentChanged", () => loop.wake("document"));
  events.on("loadFailed", () => loop.wake("load failed"));
  events.on("modelDrained", () => loop.wake("drain"));
  events.on("routerChanged", ({ event }) => {
    if (!event || !isProgress(event)) loop.wake(event ? "router event" : "router state");
  });
  events.on("engineFound", loop.retry);
  events.on("actionProgressed", ({ action, progress }) => loop.progressed(action, progress));
  events.on("actionSettled", ({ outcome }) => loop.settled(outcome));
}
