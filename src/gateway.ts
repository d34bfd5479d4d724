// The composition root: builds every part from the settings, wires them, starts and stops them in order.
import { setMaxListeners } from "node:events";
import { access, mkdir } from "node:fs/promises";
import type { AddressInfo } from "node:net";
import { join, relative } from "node:path";
import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import { GatewayError, systemCode } from "./core/errors.ts";
import { writeAtomic } from "./desired/atomic-file.ts";
import { type FileSource, type SourceStatus, watchFileSource } from "./desired/file-source.ts";
import { openDesiredStore } from "./desired/store.ts";
import { createEngineSource } from "./engines/engine-source.ts";
import type { InstallProgress } from "./engines/install/install.ts";
import { endLeftovers } from "./engines/leftovers.ts";
import { createRouter, isProgress } from "./engines/router.ts";
import { createExecutor, type Executor } from "./execute/executor.ts";
import { openInventory } from "./execute/inventory.ts";
import { modelHandlers } from "./execute/model-actions.ts";
import { presetHandlers } from "./execute/preset-actions.ts";
import { routerHandlers } from "./execute/router-actions.ts";
import { createAdmission } from "./http/admission.ts";
import { buildApp } from "./http/app.ts";
import { createCatalogue } from "./http/catalogue.ts";
import { isLoopback } from "./http/guards.ts";
import { createHubClient } from "./hub/client.ts";
import { cleanPartials } from "./hub/partials.ts";
import { lockState } from "./lifecycle.ts";
import { createCacheScanner } from "./observe/cache.ts";
import { createObserver, readPreset } from "./observe/observe.ts";
import { plan } from "./plan/plan.ts";
import { createLoop, type Pass } from "./reconcile/loop.ts";
import { packageRoot, type Settings, version } from "./settings.ts";
import { firstDocument } from "./starter/first-document.ts";
import { starterFileName, starterModel } from "./starter/starter-model.ts";
import type { StatusInput } from "./status/conditions.ts";
import { createJournal, type Journal } from "./status/journal.ts";
import { healthOf, rpcBody, runningBody, actionBody, type StatusReport, syncOf } from "./status/report.ts";
import { createStatusTracker } from "./status/tracker.ts";

export interface Gateway {
  /** `http://HOST:PORT` */
  readonly url: string;
  readonly journal: Journal;
  status(): StatusReport;
  /** Ends everything that was started; safe to call twice. */
  stop(): Promise<void>;
}

export interface GatewayOptions {
  readonly settings: Settings;
  readonly logger: FastifyBaseLogger;
  readonly onInstallProgress?: (progress: InstallProgress) => void;
}

/** Starts a gateway. Errors: `invalid_request` for settings that cannot work (port taken, state folder in use). */
export async function startGateway({ settings, logger, onInstallProgress }: GatewayOptions): Promise<Gateway> {
  if (!isLoopback(settings.host)) {
    throw new GatewayError("invalid_request", `--host ${settings.host} is open to other machines, and this version has no license keys to keep them out: use 127.0.0.1`);
  }
  const lock = await lockState(settings.stateDir);
  try {
    return await startLocked(settings, logger, onInstallProgress ?? (() => undefined), lock.release);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function startLocked(
  settings: Settings,
  logger: FastifyBaseLogger,
  onInstallProgress: (progress: InstallProgress) => void,
  unlock: () => Promise<void>,
): Promise<Gateway> {
  const { stateDir, cacheDir, configPath } = settings;
  const now = Date.now;
  const startedAt = now();
  const warn = (message: string, fields: object): void => logger.warn(fields, message);
  const presetPath = join(stateDir, "router.preset.ini");
  const enginesDir = join(stateDir, "engines");

  const ended = await endLeftovers(stateDir);
  if (ended.length > 0) warn("ended engine processes that an earlier gateway left behind", { pids: ended });
  const journal = createJournal(now);
  const store = await openDesiredStore({ stateDir, now, warn });
  const inventory = await openInventory(stateDir, warn);
  await writeFirstDocument(settings, store.hasAppliedFile());
  const partials = await cleanPartials(cacheDir).catch((error: unknown) => {
    warn("leftovers of earlier pulls could not be removed", { error: String(error) });
    return [];
  });
  if (partials.length > 0) logger.info({ partials }, "removed leftovers of earlier pulls");

  const hub = createHubClient({ endpoint: settings.hubEndpoint, token: settings.hubToken });
  const router = createRouter({
    presetPath,
    stateDir,
    cacheDir,
    environment: settings.environment,
    startTimeoutMs: settings.startTimeoutMs,
    stopGraceMs: settings.stopGraceMs,
    // The router answers a reload once the last model it ends is gone.
    reloadTimeoutMs: settings.startTimeoutMs,
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
    enginesDir,
    environment: settings.environment,
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
    routerWaitMs: settings.startTimeoutMs,
    now,
  });
  const scanner = createCacheScanner(cacheDir);
  const cachedModels = async () => {
    const cache = await scanner.scan();
    if (cache.state === "unknown") throw new GatewayError("cache_unwritable", cache.why);
    return cache.value;
  };
  const executor: Executor = createExecutor({
    handlers: {
      ...modelHandlers({ cacheDir, configPath, hub, inventory, router, drainer: admission, now, cachedModels: async () => (await cachedModels()).models }),
      ...presetHandlers(presetPath),
      ...routerHandlers({
        router,
        drainer: admission,
        binary: engine.path,
        inputs: async () => {
          const preset = await readPreset(presetPath);
          if (preset.state === "unknown") throw new GatewayError("preset_unwritable", preset.why);
          return { preset: preset.value.text, cache: (await cachedModels()).signature };
        },
      }),
    },
    transfers: settings.transfers,
    now,
    onStarted: (action) => journal.record("action.started", actionBody(action)),
    onProgress: (action, progress) => journal.record("action.progress", { key: action.key, kind: action.kind, ...progress }),
    onSettled: (outcome) => {
      const fields = { kind: outcome.action.kind, key: outcome.action.key, reason: outcome.action.reason, ms: outcome.ms };
      if (outcome.error) {
        logger.warn({ ...fields, code: outcome.error.code, error: outcome.error.message }, "an action failed");
        journal.record("action.failed", { ...actionBody(outcome.action), code: outcome.error.code, message: outcome.error.message });
      } else {
        logger.info(fields, "an action is done");
        journal.record("action.finished", { ...actionBody(outcome.action), ms: outcome.ms });
      }
      loop.settled(outcome);
    },
  });
  const observer = createObserver({ scanner, cacheDir, presetPath, router, inventory: inventory.entries, engine, onNewEngine: () => loop.retry() });
  const tracker = createStatusTracker({ now, onChange: (subject, condition) => journal.record("condition", { subject, ...condition }) });
  let source: SourceStatus = { path: configPath, valid: false, reason: "Unread", message: "not read yet", problems: [] };
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
      void noteKept(pass);
    },
    onError: (error) => logger.error({ err: error }, "a look at the world failed"),
  });

  function statusInput(pass: Pass): StatusInput {
    const { document } = pass.desired;
    return {
      desired: document,
      observed: pass.observed,
      plan: pass.plan,
      source,
      running: pass.running.map(({ action }) => ({ kind: action.kind, key: action.key, message: action.message })),
      backoff: loop.backoff(),
      hub: hub.reachability(),
      engineProblem: engine.problem(),
    };
  }

  /** What the document once marked `keep` stays when it leaves the list. */
  async function noteKept({ desired: { document } }: Pass): Promise<void> {
    const named = (keep: boolean): Set<string> => new Set(document.models.filter((model) => (model.keep ?? false) === keep).map((model) => model.id));
    await inventory.noteKept(named(true), named(false)).catch((error: unknown) => warn("the inventory could not be written", { error: String(error) }));
  }

  function status(): StatusReport {
    const pass = loop.last();
    const current = store.current();
    const conditions = tracker.conditions();
    const state = router.snapshot();
    return {
      gateway: { version, startedAt: new Date(startedAt).toISOString(), ready: !stopping.signal.aborted && conditions.some((condition) => condition.type === "Ready" && condition.status === "True") },
      router: { connected: state.phase === "ready" && state.silentSince === null, phase: state.phase, pid: state.pid, binary: engine.path(), crashes: state.crashes.length },
      rpc: rpcBody(current),
      sync: syncOf(conditions, pass?.desired.generation === current.generation),
      health: healthOf(conditions, current.document.suspend),
      generation: current.generation,
      observedGeneration: pass?.desired.generation ?? 0,
      source: { path: source.path, valid: source.valid, problems: source.problems },
      conditions,
      models: tracker.models(),
      running: executor.running().map(runningBody),
      planned: (pass?.plan.held ?? []).map(({ action, why }) => ({ ...actionBody(action), held: why })),
      inFlight: Object.fromEntries(admission.inFlight()),
    };
  }

  store.onChange((state) => {
    journal.record("document", { generation: state.generation });
    loop.wake("document");
  });

  const stopping = new AbortController();
  const cutOff = new AbortController();
  // Each answer in flight listens to it.
  setMaxListeners(0, cutOff.signal);
  const app: FastifyInstance = buildApp({
    stopping: stopping.signal,
    cutOff: cutOff.signal,
    store,
    loop,
    journal,
    status,
    planFor: (change) => {
      const pass = loop.last();
      if (!pass) throw new GatewayError("router_unavailable", "the first look at the world is under way");
      return plan(store.preview(change), pass.observed, { now: now(), backoff: new Map(), silenceLimitMs: settings.silenceLimitMs });
    },
    waitTimeoutMs: settings.waitTimeoutMs,
    logger,
    admission,
    catalogue: createCatalogue(loop.last, router),
    bodyLimit: settings.bodyLimit,
    allowedHosts: settings.allowedHosts,
    probeAfterMs: Math.min(5_000, settings.silenceLimitMs),
  });

  let files: FileSource | null = null;
  let stopped: Promise<void> | null = null;

  async function shutDown(): Promise<void> {
    // Not ready at once; answers in flight get the grace period, then end in their family's error frame.
    stopping.abort();
    await files?.close();
    await loop.stop();
    await executor.close();
    await admission.drain("all", AbortSignal.timeout(settings.stopGraceMs));
    cutOff.abort();
    await app.close();
    await router.stop();
    await hub.close();
    await unlock();
  }

  try {
    await listen(app, settings);
    files = await watchFileSource({
      path: configPath,
      store,
      others: [presetPath],
      onOther: () => loop.wake("preset file"),
      onStatus: (next) => {
        source = next;
        if (next.valid) logger.info({ path: next.path }, "gateway.yaml is applied");
        else warn("gateway.yaml is not applied", { reason: next.reason, problem: next.message });
        journal.record("source", next);
        loop.wake("source");
      },
      warn,
      pollMs: 2_000,
    });
    await files.check();
    loop.start();
    await loop.waitFor({ generation: 0, timeoutMs: settings.startTimeoutMs, test: () => true });
    void engine.prepare(stopping.signal);
  } catch (error) {
    await shutDown();
    throw error;
  }

  const { port } = app.server.address() as AddressInfo;
  const host = settings.host.includes(":") ? `[${settings.host.replace(/^\[|\]$/g, "")}]` : settings.host;
  return {
    url: `http://${host}:${port}`,
    journal,
    status,
    stop: () => (stopped ??= shutDown()),
  };
}

async function listen(app: FastifyInstance, { host, port }: Settings): Promise<void> {
  try {
    await app.listen({ host: host.replace(/^\[|\]$/g, ""), port });
  } catch (error) {
    const why = systemCode(error) === "EADDRINUSE" ? `port ${port} is taken by another program: choose one with --port` : `cannot listen on ${host}:${port} (${systemCode(error) ?? String(error)})`;
    throw new GatewayError("invalid_request", why, { cause: error });
  }
}

/** The first start has something to chat with. A file that was there once and is gone is not written again. */
async function writeFirstDocument({ configPath, stateDir }: Settings, appliedBefore: boolean): Promise<void> {
  await mkdir(stateDir, { recursive: true });
  const exists = await access(configPath).then(
    () => true,
    (error: unknown) => systemCode(error) !== "ENOENT",
  );
  if (exists || appliedBefore) return;
  const folder = join(configPath, "..");
  await mkdir(folder, { recursive: true });
  await writeAtomic(join(folder, starterFileName), starterModel().bytes);
  await writeAtomic(configPath, firstDocument(relative(folder, join(packageRoot, "schemas", "gateway.schema.json"))));
}
