// The HTTP side, wired: the edits, the families and their way to the models. Listens to no port; src/app/gateway.ts does.
import type { FastifyBaseLogger, FastifyInstance } from "fastify";
import { type Catalog, createCatalog } from "../catalog/catalog.ts";
import { createChatContext } from "../commands/chat-context.ts";
import { createEdits } from "../commands/create.ts";
import type { Edits } from "../commands/edits.ts";
import type { PullTimes } from "../commands/pull-patience.ts";
import { createVoiceFetch } from "../commands/speech/fetch-voice.ts";
import { createSpeechTurns } from "../commands/speech/turns.ts";
import { GatewayError } from "../core/errors.ts";
import { steadyNow } from "../core/steady.ts";
import { type AppDeps, buildApp } from "../http/app.ts";
import { isLoopback } from "../http/auth/guards.ts";
import { createPromptQueue } from "../http/proxy/prompt-queue.ts";
import { createUpstream } from "../http/proxy/upstream.ts";
import { createFirstLook } from "../http/server/first-look.ts";
import type { OpenAnswers } from "../http/server/open-answers.ts";
import type { LicenseKeys } from "../keys/license-keys.ts";
import { plan } from "../plan/plan.ts";
import type { Settings } from "../settings/settings.ts";
import type { StatusReport } from "../status/report.ts";
import { absentReason, takenOut } from "./absent.ts";
import type { Core } from "./core.ts";
import { warnTo } from "./warn.ts";

interface ServerOptions {
  readonly core: Core;
  readonly keys: LicenseKeys;
  readonly settings: Settings;
  readonly logger: FastifyBaseLogger;
  readonly pulls: PullTimes;
  readonly answers: OpenAnswers;
  /** Reads gateway.yaml now. */
  readonly readFile: () => Promise<void>;
  readonly status: () => StatusReport;
  /** Aborts when nothing new is taken any more. */
  readonly stopping: AbortSignal;
  /** Aborts when answers in flight are cut. */
  readonly cutOff: AbortSignal;
}

interface Named {
  readonly catalog: Catalog;
  readonly edits: Edits;
}

export function createServer(options: ServerOptions): FastifyInstance {
  const { core, keys, settings, logger, pulls, status, stopping } = options;
  const { loop, store, scheduler, router } = core;
  const catalog = createCatalog(
    loop.last,
    router,
    (name) => absentReason(status(), name) ?? takenOut(store, name),
    () => store.current().document,
  );
  const edits = createEdits({
    store,
    loop,
    scheduler,
    catalog,
    executor: core.executor,
    hub: core.hub,
    speechFiles: core.speechFiles,
    status,
    waitTimeoutMs: settings.waitTimeoutMs,
    now: Date.now,
    ...pulls,
  });
  return buildApp({
    logger,
    settings,
    stopping,
    answers: options.answers,
    loopback: isLoopback(settings.host),
    keys,
    firstLook: createFirstLook(loop, { timeoutMs: settings.startTimeoutMs, stopping }),
    own: ownDeps(options, edits),
    speech: speechDeps(options),
    families: familyDeps(options, { catalog, edits }),
  });
}

/** What the gateway's own routes need. */
function ownDeps({ core, settings, status, readFile, stopping, cutOff }: ServerOptions, edits: Edits): AppDeps["own"] {
  const { loop, store } = core;
  return {
    store,
    loop,
    journal: core.journal,
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
    readFile,
    planFor: (change, ifMatch) => {
      const pass = loop.last();
      if (!pass) throw new GatewayError("router_unavailable", "the first look at the world is under way");
      return plan(store.preview(change, ifMatch), pass.observed, {
        now: steadyNow(),
        backoff: new Map(),
        silenceLimitMs: settings.silenceLimitMs,
        underWay: loop.underWay(),
      });
    },
    waitTimeoutMs: settings.waitTimeoutMs,
    stopping,
    cutOff,
    eventListeners: settings.eventListeners,
  };
}

function speechDeps({ core, settings, stopping, cutOff }: ServerOptions): AppDeps["speech"] {
  const { loop, store } = core;
  return {
    turns: createSpeechTurns({
      store,
      loop,
      engines: core.speech,
      cachedVoices: core.speech.cachedVoices,
      fetchVoice: createVoiceFetch(core.executor, core.speech.cachedVoices),
      stopping,
    }),
    engines: core.speech,
    lists: core.speech.lists,
    voices: { ...core.speech, officialVoice: core.speech.lists.officialVoice },
    cachedModels: core.speech.cachedModels,
    uploadLimit: settings.uploadLimit,
    uploadStallMs: settings.uploadStallMs,
    uploadTimeMs: settings.uploadTimeMs,
    cutOff,
  };
}

/** What lies between a request and the process that answers it. */
function familyDeps(
  { core, settings, logger, pulls, stopping, cutOff }: ServerOptions,
  { catalog, edits }: Named,
): AppDeps["families"] {
  const { scheduler, router, events } = core;
  const warn = warnTo(logger);
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
  events.on("workersLost", ({ models, message }) => {
    // First: whoever asks again at once must not get the same process.
    for (const id of models) abandon(id);
    upstream.cut(models, message);
  });
  const prompts = createPromptQueue({
    enter: scheduler.enter,
    onStuck: (model) => {
      warn("instance replaced: still busy with a prompt whose client left", { model });
      told(model, scheduler.unload(model, stopping));
    },
  });
  const chatContext = createChatContext({ mode: settings.chatContext, catalog, edits, scheduler });
  return {
    ...pulls,
    catalog,
    edits,
    scheduler,
    upstream,
    prompts,
    chatContext,
    routerReady: router.isReady,
    cutOff,
    onFailure: (error, model) => {
      if (error.code !== "shutting_down") logger.warn({ err: error, model, code: error.code }, "a generation failed");
    },
  };
}
