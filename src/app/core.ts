// The parts between the document and the machine, wired from the bottom up: state, machine, scheduler, executor, loop, status.
// A part reports to those above it by events. Starts nothing; gateway.ts does.
import { randomBytes } from "node:crypto";
import type { FastifyBaseLogger } from "fastify";
import { createRepoTurns } from "../cache/removal/repo-turns.ts";
import { cacheNow } from "../cache/scan/scan.ts";
import { steadyNow } from "../core/steady.ts";
import type { Desired } from "../desired/document/document.ts";
import type { InstallProgress } from "../engines/install/install.ts";
import { isProgress } from "../engines/llama/router.ts";
import { createCollector } from "../execute/cache-gc.ts";
import { createExecutor } from "../execute/executor.ts";
import { modelHandlers } from "../execute/model-actions.ts";
import { presetHandlers, routerHandlers } from "../execute/router-actions.ts";
import { speechHandlers } from "../execute/speech-actions.ts";
import { createSpeechStore } from "../execute/speech-files.ts";
import { routerInputs } from "../observe/observe.ts";
import { createLoop, type Loop } from "../reconcile/loop.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import type { Settings } from "../settings/settings.ts";
import type { StateLock } from "../state/lock.ts";
import { createJournal } from "../status/journal.ts";
import { type Base, createBase, type Events } from "./events.ts";
import { createMachine, type Machine } from "./machine.ts";
import { recordEvents } from "./record.ts";
import { createRpc } from "./rpc.ts";
import { createScheduling } from "./scheduling.ts";
import { openState, type State } from "./state.ts";
import { createStatus } from "./status.ts";

export type Core = Awaited<ReturnType<typeof createCore>>;

export interface CoreOptions {
  readonly settings: Settings;
  readonly logger: FastifyBaseLogger;
  readonly lock: StateLock;
  readonly onInstall: (progress: InstallProgress) => void;
}

export async function createCore({ settings, logger, lock, onInstall }: CoreOptions) {
  const base = createBase(settings, logger);
  const { events } = base;
  const state = await openState(base, lock);
  const { store, inventory, lastUsed } = state;
  const machine = createMachine({ ...base, inventory, document: () => store.current().document, onInstall });
  const rpc = createRpc({ ...base, store, router: machine.router });
  const scheduling = createScheduling({ ...base, ...machine, store, rpc });
  const actions = createActions({ ...base, ...state, ...machine, ...scheduling });
  const loop = createLoop({
    desired: store.current,
    observer: machine.observerOf(rpc.workers),
    executor: actions.executor,
    resyncMs: settings.resyncMs,
    silenceLimitMs: settings.silenceLimitMs,
    now: steadyNow,
    random: Math.random,
    onRetry: () => events.emit({ type: "retried" }),
    onPass: (pass) => events.emit({ type: "passed", pass }),
    onError: (error) => logger.error({ err: error }, "reconcile pass failed"),
  });
  const parts = { ...base, ...state, ...machine, ...scheduling, ...actions, rpc, loop, lock };
  const status = createStatus(parts);
  const journal = createJournal(Date.now, randomBytes(4).toString("hex"));
  wakeLoop(events, loop);
  events.on("modelInUse", ({ id }) => lastUsed.note(id));
  events.on("modelIdle", ({ id }) => lastUsed.note(id));
  recordEvents({ ...parts, journal });
  /** Retries what has failed; `cacheGone`: a model cache that is missing is gone for good. */
  const retry = (cacheGone: boolean): void => {
    if (cacheGone) machine.presence.believe();
    loop.retry();
  };
  return { ...parts, status, journal, retry };
}

/** What may change the machine: a handler for each action, and the executor that runs them. */
function createActions(parts: Base & State & Machine & { readonly scheduler: Scheduler }) {
  const { settings, events, stateFolder, store, inventory, presetPath, router, engine, scheduler, speech } = parts;
  const { scanner, damage } = parts;
  const { cacheDir, configPath } = settings;
  const desired = (): Desired => store.current().document;
  const common = {
    cacheDir,
    configPath,
    inventory,
    gateway: parts.gatewayId,
    hub: parts.hub,
    turns: createRepoTurns(),
    now: Date.now,
    desired,
    cachedModels: async () => (await cacheNow(scanner)).models,
  };
  const speechFiles = createSpeechStore({ ...common, ...speech });
  const collector = createCollector({ ...common, router: router.snapshot, speech: speechFiles });
  const executor = createExecutor({
    handlers: {
      ...modelHandlers({
        ...common,
        router,
        drainer: scheduler,
        removals: {
          get: (id) => desired().removals.find((removal) => removal.id === id),
          note: store.noteRemoval,
          end: store.endRemoval,
        },
        isWanted: (id) => desired().models.some((model) => model.id === id),
        onVerified: damage.forget,
      }),
      "cache.gc": collector.handler,
      ...presetHandlers(presetPath, stateFolder.write, (lines) => events.emit({ type: "presetLinesDisabled", lines })),
      ...routerHandlers({
        router,
        drainer: scheduler,
        binary: engine.path,
        inputs: () => routerInputs(presetPath, scanner),
      }),
      ...speechHandlers({
        ...common,
        ...speech,
        engines: speech,
        isWanted: (kind, choice) => desired().speech?.[kind] === choice,
      }),
    },
    transfers: settings.transfers,
    now: steadyNow,
    onStarted: (action) => events.emit({ type: "actionStarted", action }),
    onProgress: (action, progress) => events.emit({ type: "actionProgressed", action, progress }),
    onSettled: (outcome) => events.emit({ type: "actionSettled", outcome }),
  });
  return { executor, collector, speechFiles };
}

function wakeLoop(events: Events, loop: Loop): void {
  events.on("changed", () => loop.wake());
  events.on("documentChanged", () => loop.wake());
  events.on("loadFailed", () => loop.wake());
  events.on("modelDrained", () => loop.wake());
  events.on("routerChanged", ({ event }) => {
    if (!event || !isProgress(event)) loop.wake();
  });
  events.on("engineFound", loop.retry);
  events.on("actionProgressed", ({ action, progress }) => loop.progressed(action, progress));
  events.on("actionSettled", ({ outcome }) => loop.settled(outcome));
}
