// Starts a gateway and stops it, in order.
import { setMaxListeners } from "node:events";
import { join } from "node:path";
import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import { GatewayError } from "./core/errors.ts";
import { matchName, normaliseName } from "./core/ids.ts";
import { removeTemporaries } from "./desired/atomic-file.ts";
import type { DesiredState } from "./desired/document.ts";
import { type FileSource, watchFileSource } from "./desired/file-source.ts";
import type { DesiredStore } from "./desired/store.ts";
import type { InstallProgress } from "./engines/install/install.ts";
import { endLeftovers } from "./engines/leftovers.ts";
import { type Core, createCore } from "./gateway/core.ts";
import { writeFirstDocument } from "./gateway/first-start.ts";
import { buildApp } from "./http/app.ts";
import { createCatalogue } from "./http/catalogue.ts";
import { createChatContext } from "./http/chat-context.ts";
import { createEdits } from "./http/edits/create.ts";
import { isLoopback } from "./http/guards.ts";
import { createIdleUnload } from "./http/idle.ts";
import { keyFileName } from "./http/keys/key-file.ts";
import { type LicenseKeys, openLicenseKeys } from "./http/keys/license-keys.ts";
import { listen, requireKeys } from "./http/listen.ts";
import { createSpeechUse } from "./http/speech/use.ts";
import { createUpstream } from "./http/upstream.ts";
import { cleanPartials } from "./hub/partials.ts";
import { voiceRepo } from "./hub/speech-files.ts";
import { lockState } from "./lifecycle.ts";
import { plan } from "./plan/plan.ts";
import { packageRoot, type Settings } from "./settings.ts";
import { transcriptionRepo } from "./speech/transcription-models.ts";
import type { Journal } from "./status/journal.ts";
import type { StatusReport } from "./status/report.ts";

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
}

/** Filesystems without events: how often gateway.yaml is looked at anyway. */
const filePollMs = 2_000;

/** Starts a gateway. Errors: `invalid_request` for settings that cannot work (port taken, state folder in use). */
export async function startGateway(options: GatewayOptions): Promise<Gateway> {
  const { settings, logger } = options;
  const keys = openLicenseKeys({
    path: join(settings.stateDir, keyFileName),
    single: settings.licenseKey,
    now: Date.now,
    warn: (message, fields) => logger.warn(fields, message),
  });
  requireKeys(settings.host, keys);
  const lock = await lockState(settings.stateDir);
  try {
    const ended = await endLeftovers(settings.stateDir);
    if (ended.length > 0) logger.warn({ pids: ended }, "ended engine processes that an earlier gateway left behind");
    await removeTemporaries(settings.stateDir);
    const core = await createCore({
      settings,
      logger,
      onInstallProgress: options.onInstallProgress ?? (() => undefined),
    });
    const isFirst = await writeFirstDocument(
      settings.configPath,
      join(packageRoot, "schemas", "gateway.schema.json"),
      core.store.hasAppliedFile(),
    );
    if (isFirst) logger.info({ path: settings.configPath }, "wrote a first document, with a starter model");
    return await run(core, keys, settings, logger, lock.release);
  } catch (error) {
    await lock.release();
    throw error;
  }
}

/** Of models that are wanted they stay: the next pull goes on with them. */
async function removeLeftoverPartials(
  cacheDir: string,
  { document }: DesiredState,
  logger: FastifyBaseLogger,
): Promise<void> {
  try {
    const { transcription, synthesis } = document.speech ?? { transcription: null, synthesis: null };
    const wanted = [
      ...document.models.map(({ id }) => id),
      ...(transcription === null ? [] : [`${transcriptionRepo}:${transcription}`]),
      ...(synthesis === null ? [] : [`${voiceRepo}:${synthesis}`]),
    ];
    const partials = await cleanPartials(cacheDir, new Set(wanted));
    if (partials.length > 0) logger.info({ partials }, "removed leftovers of earlier pulls");
  } catch (error) {
    logger.warn({ error: String(error) }, "leftovers of earlier pulls could not be removed");
  }
}

async function run(
  core: Core,
  keys: LicenseKeys,
  settings: Settings,
  logger: FastifyBaseLogger,
  unlock: () => Promise<void>,
): Promise<Gateway> {
  const { loop, store, admission, journal, router } = core;
  const warn = (message: string, fields: object): void => logger.warn(fields, message);
  const stopping = new AbortController();
  const cutOff = new AbortController();
  // Each answer in flight listens to it.
  setMaxListeners(0, cutOff.signal);
  const status = (): StatusReport => core.status(stopping.signal.aborted);
  const catalogue = createCatalogue(
    loop.last,
    router,
    (name) => absentReason(status(), name) ?? takenOut(store, name),
    () => store.current().document,
  );
  const edits = createEdits({
    store,
    loop,
    admission,
    catalogue,
    executor: core.executor,
    hub: core.hub,
    status,
    waitTimeoutMs: settings.waitTimeoutMs,
    now: Date.now,
  });
  const speechUse = createSpeechUse({
    store,
    loop,
    engines: core.speech,
    lists: core.speech.lists,
    cachedVoices: core.speech.cachedVoices,
  });
  const idle = createIdleUnload({ admission, keepAliveMs: settings.keepAliveMs, now: Date.now, warn });
  const abandon = (id: string): void => {
    admission.abandon(id).catch((error: unknown) => warn("a model could not be ended", { id, error: String(error) }));
  };
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
  const app: FastifyInstance = buildApp({
    logger,
    settings,
    stopping: stopping.signal,
    loopback: isLoopback(settings.host),
    keys,
    own: {
      store,
      loop,
      journal,
      status,
      edits,
      hub: core.hub,
      executor: core.executor,
      collector: core.collector,
      inventory: core.inventory,
      lastUsed: core.lastUsed,
      planFor: (change) => {
        const pass = loop.last();
        if (!pass) throw new GatewayError("router_unavailable", "the first look at the world is under way");
        return plan(store.preview(change), pass.observed, {
          now: Date.now(),
          backoff: new Map(),
          silenceLimitMs: settings.silenceLimitMs,
          needs: loop.needs(),
        });
      },
      waitTimeoutMs: settings.waitTimeoutMs,
    },
    speech: {
      use: speechUse,
      engines: core.speech,
      lists: core.speech.lists,
      cachedVoices: core.speech.cachedVoices,
      cachedModels: core.speech.cachedModels,
      uploadLimit: settings.uploadLimit,
    },
    families: {
      catalogue,
      edits,
      admission,
      idle,
      upstream,
      chatContext: createChatContext({ mode: settings.chatContext, catalogue, edits, admission }),
      routerReady: router.isReady,
      cutOff: cutOff.signal,
      onFailure: (error, model) => logger.warn({ err: error, model, code: error.code }, "a generation failed"),
    },
  });
  let files: FileSource | null = null;
  let stopped: Promise<void> | null = null;

  async function shutDown(): Promise<void> {
    // Not ready at once; answers in flight get the grace period, then end in their family's error frame.
    stopping.abort();
    await files?.close();
    await loop.stop();
    core.rpc.workers.stop();
    await core.executor.close();
    idle.stop();
    const grace = AbortSignal.timeout(settings.stopGraceMs);
    await Promise.all([admission.drain("all", grace), core.speech.settled(grace)]);
    cutOff.abort();
    await app.close();
    await Promise.all([router.stop(), core.speech.close()]);
    await core.hub.close();
    await core.lastUsed.close();
    await unlock();
  }

  try {
    const url = await listen(app, settings.host, settings.port);
    files = await watchFileSource({
      path: settings.configPath,
      store,
      others: [core.presetPath],
      onOther: () => loop.wake("preset file"),
      onStatus: core.noteSource,
      warn,
      pollMs: filePollMs,
    });
    await files.check();
    await removeLeftoverPartials(settings.cacheDir, store.current(), logger);
    store.onChange((state) => void removeLeftoverPartials(settings.cacheDir, state, logger));
    loop.start();
    await loop.waitFor({ generation: 0, timeoutMs: settings.startTimeoutMs, test: () => true });
    void core.engine.prepare(stopping.signal);
    const needsKey = (): boolean => !isLoopback(settings.host) || keys.areRequired();
    return { url, journal, status, needsKey, stop: () => (stopped ??= shutDown()) };
  } catch (error) {
    await shutDown();
    throw error;
  }
}

/** What is the matter with a model that the document names and the cache lacks; null for one that it does not name. */
function absentReason({ models }: StatusReport, name: string): string | null {
  const desired = models.filter((model) => model.desired);
  const match = matchName(
    name,
    desired.map(({ id }) => ({ id, aliases: [] })),
  );
  if (match.kind !== "found") return null;
  const present = desired
    .find((model) => model.id === match.id)
    ?.conditions.find((condition) => condition.type === "Present");
  return present && present.status !== "True" ? `is in the document but not here yet: ${present.message}` : null;
}

/** That a call took a model out which the file still names: an edit of the file elsewhere does not bring it back. */
function takenOut(store: DesiredStore, name: string): string | null {
  const id = normaliseName(name);
  const named = store.current().document.models.some((model) => model.id === id);
  if (named || !store.isInFile(id)) return null;
  const difference = store.differencesFromFile().find(({ path, desired }) => desired === null && path.includes(id));
  const by = difference?.setBy ?? "a call of the API";
  return `is in gateway.yaml, but was taken out of the document by ${by}: take it out of the file, save, and put it in again`;
}
