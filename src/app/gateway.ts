// Starts a gateway and stops it, in order.
import { setMaxListeners } from "node:events";
import { join } from "node:path";
import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import { createCatalogue } from "../catalog/catalog.ts";
import { createChatContext } from "../commands/chat-context.ts";
import { createEdits } from "../commands/create.ts";
import type { PullTimes } from "../commands/pull-patience.ts";
import { GatewayError } from "../core/errors.ts";
import { steadyNow } from "../core/steady.ts";
import { type FileSource, watchFileSource } from "../desired/file-source.ts";
import type { InstallProgress } from "../engines/install/install.ts";
import { endLeftovers } from "../engines/process/leftovers.ts";
import { buildApp } from "../http/app.ts";
import { isLoopback } from "../http/auth/guards.ts";
import { keyFileName } from "../http/auth/key-file.ts";
import { type LicenseKeys, openLicenseKeys } from "../http/auth/license-keys.ts";
import { createPromptQueue } from "../http/proxy/prompt-queue.ts";
import { createUpstream } from "../http/proxy/upstream.ts";
import { createFirstLook } from "../http/server/first-look.ts";
import { listen, requireFreePort, requireKeys } from "../http/server/listen.ts";
import { createOpenAnswers } from "../http/server/open-answers.ts";
import { createVoiceFetch } from "../http/speech/fetch-voice.ts";
import { createSpeechTurns } from "../http/speech/turns.ts";
import { isDocumentFile } from "../observe/document-files.ts";
import { plan } from "../plan/plan.ts";
import type { Settings } from "../settings/settings.ts";
import { removeTemporaries } from "../state/atomic-file.ts";
import { lockState, requireUnlocked, type StateLock } from "../state/lock.ts";
import type { Journal } from "../status/journal.ts";
import type { StatusReport } from "../status/report.ts";
import { absentReason, takenOut } from "./absent.ts";
import { type Core, createCore } from "./core.ts";
import { writeFirstDocument } from "./first-start.ts";
import { unlessDiskRefuses } from "./kept.ts";
import { removeLeftoverPartials } from "./leftover-partials.ts";
import { openFilesProblem } from "./open-files.ts";
import { shutDown } from "./shut-down.ts";
import { watchCache } from "./watch-cache.ts";

export interface Gateway {
  /** `http://HOST:PORT` */
  readonly url: string;
  readonly journal: Journal;
  status(): StatusReport;
  /** Whether a request needs a license key. */
  needsKey(): boolean;
  /** Ends everything that was started; safe to call twice. */
  stop(): Promise<void>;
}

export interface GatewayOptions {
  readonly settings: Settings;
  readonly logger: FastifyBaseLogger;
  readonly onInstallProgress?: (progress: InstallProgress) => void;
  /** Gives the start up: whatever has been started ends. */
  readonly signal?: AbortSignal;
  /** For tests, which cannot wait as long as people do. */
  readonly pulls?: PullTimes;
}

/** Filesystems without events: how often gateway.yaml is looked at anyway. */
const filePollMs = 2_000;

/** How often the state folder is looked after, and whether the model cache is in its place. */
const stateLookMs = 2_000;

/**
 * Starts a gateway. Errors: `invalid_request` for settings that cannot work (port taken, state folder in use);
 * `shutting_down`, `cancelled` where the start was given up.
 */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { settings, logger, signal = new AbortController().signal } = options;
  const keys = openLicenseKeys({
    path: join(settings.stateDir, keyFileName),
    single: settings.licenseKey,
    createCommand: settings.command("key", "create", "NAME"),
    now: Date.now,
    warn: (message, fields) => logger.warn(fields, message),
  });
  requireKeys(settings.host, keys, settings.command);
  // Nothing is written by a gateway that could not serve.
  await requireUnlocked(settings.stateDir);
  await requireFreePort(settings);
  const lock = await lockState(settings.stateDir);
  try {
    const ended = await endLeftovers(settings.stateDir);
    if (ended.length > 0) logger.warn({ pids: ended }, "ended engine processes that an earlier gateway left behind");
    await unlessDiskRefuses(logger, () => removeTemporaries(settings.stateDir));
    const core = await createCore({
      settings,
      logger,
      lock,
      onInstallProgress: options.onInstallProgress ?? (() => undefined),
    });
    await unlessDiskRefuses(logger, () => writeFirstDocument(settings, core.store.hasAppliedFile(), logger));
    const tight = await openFilesProblem(settings.maxConnections);
    if (tight !== null) logger.warn(tight);
    return await run({ core, keys, settings, logger, signal, lock, pulls: options.pulls ?? {} });
  } catch (error) {
    await lock.release();
    throw error;
  }
}

async function run({
  core,
  keys,
  settings,
  logger,
  signal,
  lock,
  pulls,
}: {
  readonly core: Core;
  readonly keys: LicenseKeys;
  readonly settings: Settings;
  readonly logger: FastifyBaseLogger;
  readonly signal: AbortSignal;
  readonly lock: StateLock;
  readonly pulls: PullTimes;
}): Promise<Gateway> {
  const { loop, store, scheduler, journal, router } = core;
  const warn = (message: string, fields: object): void => logger.warn(fields, message);
  const stopping = new AbortController();
  const cutOff = new AbortController();
  // Each request that waits, each answer in flight listens to one of them.
  setMaxListeners(0, stopping.signal, cutOff.signal);
  const answers = createOpenAnswers();
  let stoppingSince: number | null = null;
  stopping.signal.addEventListener("abort", () => {
    stoppingSince = Date.now();
  });
  const status = (): StatusReport => core.status(stoppingSince);
  const catalogue = createCatalogue(
    loop.last,
    router,
    (name) => absentReason(status(), name) ?? takenOut(store, name),
    () => store.current().document,
  );
  const edits = createEdits({
    store,
    loop,
    scheduler,
    catalogue,
    executor: core.executor,
    hub: core.hub,
    speechFiles: core.speechFiles,
    status,
    waitTimeoutMs: settings.waitTimeoutMs,
    now: Date.now,
    ...pulls,
  });
  const told = (id: string, ended: Promise<void>): void =>
    void ended.catch((error: unknown) => warn("a model could not be ended", { id, error: String(error) }));
  const abandon = (id: string): void => told(id, scheduler.abandon(id));
  const upstream = createUpstream({
    probeAfterMs: Math.min(5_000, settings.silenceLimitMs),
    stallMs: settings.workerStallMs,
    onStall: (instance) => {
      logger.warn({ model: instance.id, workers: instance.workers }, "a model hangs on one of its RPC workers");
      abandon(instance.id);
    },
  });
  core.rpc.onLoss((models, message) => {
    // First: whoever asks again at once must not get the same process.
    for (const id of models) abandon(id);
    upstream.cut(models, message);
  });
  const prompts = createPromptQueue({
    enter: scheduler.enter,
    onStuck: (model) => {
      warn("instance replaced: still busy with a prompt whose client left", { model });
      told(model, scheduler.unload(model, stopping.signal));
    },
  });
  const chatContext = createChatContext({ mode: settings.chatContext, catalogue, edits, scheduler });
  const app: FastifyInstance = buildApp({
    logger,
    settings,
    stopping: stopping.signal,
    answers,
    loopback: isLoopback(settings.host),
    keys,
    firstLook: createFirstLook(loop, { timeoutMs: settings.startTimeoutMs, stopping: stopping.signal }),
    own: {
      store,
      loop,
      journal,
      status,
      edits,
      hub: core.hub,
      executor: core.executor,
      collector: core.collector,
      speechFiles: core.speechFiles,
      inventory: core.inventory,
      lastUsed: core.lastUsed,
      retry: core.retry,
      stateDir: settings.stateDir,
      readFile: async () => files?.refresh(),
      planFor: (change, ifMatch) => {
        const pass = loop.last();
        if (!pass) throw new GatewayError("router_unavailable", "the first look at the world is under way");
        return plan(store.preview(change, ifMatch), pass.observed, {
          now: steadyNow(),
          backoff: new Map(),
          silenceLimitMs: settings.silenceLimitMs,
          needs: loop.needs(),
        });
      },
      waitTimeoutMs: settings.waitTimeoutMs,
      stopping: stopping.signal,
      cutOff: cutOff.signal,
      eventListeners: settings.eventListeners,
    },
    speech: {
      turns: createSpeechTurns({
        store,
        loop,
        engines: core.speech,
        cachedVoices: core.speech.cachedVoices,
        fetchVoice: createVoiceFetch(core.executor, core.speech.cachedVoices),
        stopping: stopping.signal,
      }),
      engines: core.speech,
      lists: core.speech.lists,
      voices: { ...core.speech, officialVoice: core.speech.lists.officialVoice },
      cachedModels: core.speech.cachedModels,
      uploadLimit: settings.uploadLimit,
      uploadStallMs: settings.uploadStallMs,
      uploadTimeMs: settings.uploadTimeMs,
      cutOff: cutOff.signal,
    },
    families: {
      ...pulls,
      catalogue,
      edits,
      scheduler,
      upstream,
      prompts,
      chatContext,
      routerReady: router.isReady,
      cutOff: cutOff.signal,
      onFailure: (error, model) => {
        if (error.code !== "shutting_down") logger.warn({ err: error, model, code: error.code }, "a generation failed");
      },
    },
  });
  let files: FileSource | null = null;
  let stopped: Promise<void> | null = null;

  let preparing: Promise<void> = Promise.resolve();
  let stopWatching: () => void = () => undefined;
  const stop = (): Promise<void> => {
    stopWatching();
    return (stopped ??= shutDown({
      core,
      app,
      answers,
      files,
      preparing,
      stopGraceMs: settings.stopGraceMs,
      stopping,
      cutOff,
      unlock: lock.release,
    }));
  };

  try {
    const url = await listen(app, settings);
    lock.announce(url);
    files = await watchFileSource({
      path: settings.configPath,
      store,
      presetAllow: settings.presetAllow,
      others: [core.presetPath],
      isOther: (changed) => isDocumentFile(settings.configPath, store.current().document, changed),
      onOther: () => loop.wake("watched file"),
      onStatus: core.noteSource,
      warn,
      pollMs: filePollMs,
    });
    await files.check();
    await core.stateFolder.look();
    core.stateFolder.start(stateLookMs);
    stopWatching = watchCache(settings.cacheDir, loop);
    await removeLeftoverPartials(settings.cacheDir, core, logger);
    store.onChange(() => void removeLeftoverPartials(settings.cacheDir, core, logger));
    loop.start();
    await loop.waitFor({ generation: 0, timeoutMs: settings.startTimeoutMs, signal, test: () => true });
    preparing = core.engine.prepare(stopping.signal);
    const needsKey = (): boolean => !isLoopback(settings.host) || keys.areRequired();
    return { url, journal, status, needsKey, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
