// The parts between the document and the machine, wired from the bottom up: state, machine, scheduler, executor, loop, status.
// A part reports to those above it by events. Starts nothing; gateway.ts does.

import { randomBytes } from "node:crypto";
import type { FastifyBaseLogger } from "fastify";
import { cacheReadOnly } from "../core/errors.ts";
import { steadyNow } from "../core/steady.ts";
import type { InstallProgress } from "../engines/install/build.ts";
import { isProgress } from "../engines/llama/router-list.ts";
import { createExecutor, type Handlers } from "../execute/executor.ts";
import { modelHandlers } from "../execute/model-actions.ts";
import { presetHandlers } from "../execute/preset-actions.ts";
import { routerHandlers } from "../execute/router-actions.ts";
import { speechHandlers } from "../execute/speech-actions.ts";
import { inputsIn, routerInputs, routerNow } from "../observe/observe.ts";
import { actionKinds, writesCache } from "../plan/actions.ts";
import { parsePreset } from "../plan/preset-file.ts";
import { canDoUnfitted } from "../plan/wanted-preset.ts";
import { createLoop, type Loop } from "../reconcile/loop.ts";
import type { Settings } from "../settings/settings.ts";
import type { StateLock } from "../state/lock.ts";
import { createStateFolder, type StateFolder } from "../state/state-folder.ts";
import { createJournal } from "../status/journal.ts";
import { chooseContexts } from "./contexts.ts";
import { type Base, createBase } from "./events.ts";
import { recordHistory } from "./history.ts";
import { createHubMemory } from "./hub-memory.ts";
import { createMachine, createStorage, type Machine } from "./machine.ts";
import { createMemoryFacts } from "./memory.ts";
import { planRules } from "./plan-rules.ts";
import { createMetering, recordEvents } from "./record.ts";
import { createRpc } from "./rpc.ts";
import { createScheduling, type Scheduling } from "./scheduling.ts";
import { openState, type State } from "./state.ts";
import { createStatus } from "./status.ts";

export type Core = Awaited<ReturnType<typeof createCore>>;

export async function createCore(
  settings: Settings,
  logger: FastifyBaseLogger,
  lock: StateLock,
  onInstall: (progress: InstallProgress) => void,
) {
  const base = createBase(settings, logger);
  const { events } = base;
  const stateFolder = createStateFolder({
    stateDir: settings.stateDir,
    hold: lock.hold,
    onChange: ({ writable, reason, message }) => {
      if (writable) logger.info({ reason }, message);
      else logger.warn({ reason, problem: message }, "the state folder takes no changes");
      events.emit("changed");
    },
  });
  const state = await openState(base, stateFolder);
  const { store, lastUsed } = state;
  const machine = createMachine({ ...base, ...state, onInstall });
  const memory = createMemoryFacts({ ...base, ...state, ...machine });
  const contexts = chooseContexts({ ...base, ...state, memory });
  const rpc = createRpc({ ...base, store, router: machine.router });
  const scheduling = createScheduling({ ...base, ...state, ...machine, rpc, memory });
  const actions = createActions({ ...base, ...state, ...machine, ...scheduling, stateFolder });
  const loop = createLoop({
    desired: store.current,
    observer: machine.observerOf(rpc.workers),
    executor: actions.executor,
    resyncMs: settings.resyncMs,
    ...planRules(settings),
    now: steadyNow,
    random: Math.random,
    onRetry: () => events.emit("retried"),
    onPass: (pass) => events.emit("passed", pass),
    onError: (error) => logger.error({ err: error }, "reconcile pass failed"),
  });
  const hubMemory = createHubMemory({ ...base, ...machine, memory, loop });
  const facts = { memory, contexts, ...hubMemory };
  const parts = { ...base, ...state, ...machine, ...scheduling, ...actions, ...facts, stateFolder, rpc, loop, lock };
  const status = createStatus(parts);
  const meters = createMetering(parts);
  const journal = createJournal(Date.now, randomBytes(4).toString("hex"));
  wakeLoop(events, loop);
  events.on("modelInUse", lastUsed.note);
  events.on("modelIdle", lastUsed.note);
  recordEvents({ ...parts, journal });
  recordHistory(parts);
  /** Retries what has failed; `cacheGone`: a model cache that is missing is gone for good. */
  const retry = (cacheGone: boolean): void => {
    if (cacheGone) machine.presence.believe();
    loop.retry();
  };
  return { ...parts, status, meters, journal, retry };
}

const unseen = { state: "unknown", why: "no pass has seen it yet" } as const;

/** What may change the machine: a handler for each action, and the executor that runs them. */
function createActions(parts: Base & State & Machine & Scheduling & { readonly stateFolder: StateFolder }) {
  const { settings, events, stateFolder, store, presetPath, router, engine, scheduler, speech, scanner } = parts;
  const { cacheAccess, collector } = createStorage(parts);
  const { desired } = cacheAccess;
  let seen: Parameters<typeof inputsIn>[0] = { preset: unseen, cache: unseen };
  events.on("passed", ({ observed }) => {
    seen = observed;
  });
  const executor = createExecutor({
    handlers: keepingCache(settings, {
      ...modelHandlers({
        ...cacheAccess,
        router,
        drainer: scheduler,
        removals: {
          get: (id) => desired().removals.find((removal) => removal.id === id),
          note: store.noteRemoval,
          end: store.endRemoval,
        },
        isWanted: (id) => desired().models.some((model) => model.id === id),
        onVerified: parts.damage.forget,
      }),
      "cache.gc": collector.handler,
      ...presetHandlers(presetPath, stateFolder.write, (lines) => events.emit("presetLinesDisabled", lines)),
      ...routerHandlers({
        router,
        drainer: scheduler,
        binary: engine.path,
        isUnfitted: async (preset) => canDoUnfitted(desired(), parsePreset(preset)) && engine.isAlone(),
        inputs: () => routerInputs(presetPath, scanner),
        seenInputs: () => inputsIn(seen),
        observed: () => routerNow(parts),
      }),
      ...speechHandlers({
        ...cacheAccess,
        ...speech,
        engines: speech,
        isWanted: (kind, choice) => desired().speech?.[kind] === choice,
      }),
    }),
    transfers: settings.transfers,
    now: steadyNow,
    onStarted: (action) => events.emit("actionStarted", action),
    onProgress: (action, progress) => events.emit("actionProgressed", action, progress),
    onSettled: (outcome) => events.emit("actionSettled", outcome),
  });
  return { executor, collector };
}

/** Plans hold such actions already; calls that request one are refused here. */
function keepingCache({ pulls }: Settings, handlers: Handlers): Handlers {
  if (pulls === "on") return handlers;
  const refused = actionKinds.filter(writesCache).map((kind) => [kind, () => Promise.reject(cacheReadOnly())] as const);
  return { ...handlers, ...Object.fromEntries(refused) };
}

function wakeLoop(events: Base["events"], loop: Loop): void {
  events.on("changed", () => loop.wake());
  events.on("documentChanged", () => loop.wake());
  events.on("loadFailed", () => loop.wake());
  events.on("loadVerified", () => loop.wakeLater());
  events.on("routerChanged", (event) => {
    if (!event) loop.wake();
    else if (!isProgress(event)) loop.wakeLater();
  });
  events.on("engineFound", loop.retry);
  events.on("actionProgressed", loop.progressed);
  events.on("actionSettled", loop.settled);
}
