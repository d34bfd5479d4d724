// The HTTP side, wired: the edits, the route families and their way to the models. Listens on no port; gateway.ts does.
import type { FastifyInstance } from "fastify";
import { createCatalog } from "../catalog/catalog.ts";
import { createChatContext } from "../commands/chat-context.ts";
import { createEdits } from "../commands/edits.ts";
import type { PullTimes } from "../commands/pull-patience.ts";
import { createSpeechTurns } from "../commands/speech/turns.ts";
import { normaliseName } from "../core/ids.ts";
import type { FileSource } from "../desired/file-source.ts";
import type { DesiredStore } from "../desired/store.ts";
import { createUpstream } from "../engines/llama/upstream.ts";
import { type AppDeps, buildApp } from "../http/app.ts";
import { isLoopback } from "../http/auth/guards.ts";
import { createInFlight } from "../http/proxy/in-flight.ts";
import type { OpenAnswers } from "../http/server/open-answers.ts";
import type { LicenseKeys } from "../keys/license-keys.ts";
import { createPromptQueue } from "../scheduler/prompt-queue.ts";
import { modelNamed, type StatusReport } from "../status/report.ts";
import type { Core } from "./core.ts";
import { createPlanning } from "./planning.ts";

/** A gateway that was started, with what its server and its stop need of it. */
export interface Running {
  readonly core: Core;
  readonly keys: LicenseKeys;
  readonly pulls: PullTimes;
  readonly answers: OpenAnswers;
  readonly files: FileSource;
  readonly status: () => StatusReport;
  /** Aborts when it is told to stop. */
  readonly leaving: AbortController;
  /** Aborts when no new requests are taken and requests that wait for a model are rejected. */
  readonly stopping: AbortController;
  /** Aborts when responses in flight end in an error frame of their family. */
  readonly cutOff: AbortController;
}

/** Each family takes what it needs from one set of parts. */
export function createServer({ core, keys, pulls, answers, files, status, ...ends }: Running): FastifyInstance {
  const { settings, logger, loop, store, speech } = core;
  const stopping = ends.stopping.signal;
  const catalog = createCatalog(
    loop.last,
    core.router,
    (name) => absentReason(status(), name) ?? removedReason(store, name),
    () => store.current().document,
    core.memory,
  );
  const run = {
    status,
    answers,
    leaving: ends.leaving.signal,
    stopping,
    cutOff: ends.cutOff.signal,
    readFile: files.refresh,
  };
  const shared = { ...settings, ...core, ...run, ...pulls, catalog };
  const edits = createEdits({ ...shared, now: Date.now });
  const deps = { ...shared, edits, inFlight: createInFlight() };
  return buildApp({
    logger,
    settings,
    leaving: run.leaving,
    stopping,
    answers,
    loopback: isLoopback(settings.host),
    keys,
    firstLook: { loop, timeoutMs: settings.startTimeoutMs, stopping },
    own: { ...deps, ...createPlanning(core) },
    speech: {
      ...deps,
      ...speech,
      engines: speech,
      voices: { ...speech, officialVoice: speech.lists.officialVoice },
      turns: createSpeechTurns({
        ...deps,
        engines: speech,
        cachedVoices: speech.cachedVoices,
      }),
    },
    families: {
      ...deps,
      ...upstreamParts(core, { stopping, cutOff: run.cutOff }),
      chatContext: createChatContext({
        ...deps,
        mode: settings.writes === "file" ? "ignore" : settings.chatContext,
        requireContext: (id, tokens) => core.memory.models.requireContext(deps.catalog.resolve(id).upstreamId, tokens),
      }),
      routerReady: core.router.isReady,
      onFailure: (error, model) => {
        if (error.code !== "shutting_down") logger.warn({ err: error, model, code: error.code }, "a generation failed");
      },
    },
  });
}

/** What lies between a request and the process that answers it. */
function upstreamParts(
  { scheduler, settings, warn, events }: Core,
  { stopping, cutOff }: { readonly stopping: AbortSignal; readonly cutOff: AbortSignal },
): Pick<AppDeps["families"], "upstream" | "prompts"> {
  const warnOf = (id: string, ended: Promise<void>): void =>
    void ended.catch((error: unknown) => warn("a model could not be ended", { id, error: String(error) }));
  const upstream = createUpstream({
    probeAfterMs: Math.min(5_000, settings.silenceLimitMs),
    stallMs: settings.workerStallMs,
    cutOff,
    onStall: ({ id, workers }) => {
      warn("a model hangs on one of its RPC workers", { model: id, workers });
      warnOf(id, scheduler.abandon(id));
    },
  });
  events.on("workersLost", (models, message) => {
    // Before the cut: a client that repeats its request at once must not get the same process.
    for (const id of models) warnOf(id, scheduler.abandon(id));
    upstream.cut(models, message);
  });
  const prompts = createPromptQueue({
    enter: scheduler.enter,
    onStuck: (model) => {
      warn("instance replaced: still busy with a prompt whose client left", { model });
      warnOf(model, scheduler.unload(model, stopping));
    },
  });
  return { upstream, prompts };
}

/** Why a model that the document names is not in the cache; null for one that it does not name. */
function absentReason({ models }: StatusReport, name: string): string | null {
  const desired = models.filter((model) => model.desired);
  const present = modelNamed(desired, name)?.conditions.find(({ type }) => type === "Present");
  return present && present.status !== "True" ? `is in the document but not here yet: ${present.message}` : null;
}

/** The file still names a model that an API call removed: an edit elsewhere in the file does not restore it. */
function removedReason(store: DesiredStore, name: string): string | null {
  const id = normaliseName(name);
  const named = store.current().document.models.some((model) => model.id === id);
  if (named || store.inFile(id) === undefined) return null;
  const difference = store.differencesFromFile().find(({ path, desired }) => desired === null && path.includes(id));
  const by = difference?.setBy ?? "a call of the API";
  return `is in gateway.yaml, but was taken out of the document by ${by}: pull it, and it comes back as the file has it`;
}
