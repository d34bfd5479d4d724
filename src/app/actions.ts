// What may change the machine, wired: the executor, a handler for each action, and what the actions keep on disk. Starts nothing.
import { createRepoTurns } from "../cache/removal/repo-turns.ts";
import type { Damage } from "../cache/scan/damage.ts";
import { type CacheScanner, cacheNow } from "../cache/scan/scan.ts";
import type { Desired } from "../desired/document/document.ts";
import type { EngineSource } from "../engines/llama/engine-source.ts";
import type { Router } from "../engines/llama/router.ts";
import { type Collector, createCollector } from "../execute/cache-gc.ts";
import { createExecutor, type Executor } from "../execute/executor.ts";
import { modelHandlers } from "../execute/model-actions.ts";
import { presetHandlers } from "../execute/preset-actions.ts";
import { routerHandlers } from "../execute/router-actions.ts";
import type { SpeechStore } from "../execute/speech-files.ts";
import type { HubClient } from "../hub/client.ts";
import { routerInputs } from "../observe/observe.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import type { Settings } from "../settings/settings.ts";
import type { Events } from "./events.ts";
import type { Kept } from "./kept.ts";
import { createSpeechStorage, type Speech } from "./speech.ts";

export interface Actions {
  readonly executor: Executor;
  readonly collector: Collector;
  readonly speechFiles: SpeechStore;
}

export function createActions(options: {
  readonly settings: Settings;
  readonly events: Events;
  readonly kept: Kept;
  readonly presetPath: string;
  readonly hub: HubClient;
  readonly router: Router;
  readonly engine: EngineSource;
  readonly scheduler: Scheduler;
  readonly speech: Speech;
  readonly scanner: CacheScanner;
  readonly damage: Damage;
  readonly now: () => number;
}): Actions {
  const { settings, events, presetPath, hub, router, engine, scheduler, speech, scanner, damage, now } = options;
  const { stateFolder, store, inventory, gatewayId } = options.kept;
  const desired = (): Desired => store.current().document;
  const transfers = { cacheDir: settings.cacheDir, gateway: gatewayId, hub, turns: createRepoTurns() };
  const cachedModels = async () => (await cacheNow(scanner)).models;
  const stored = { ...transfers, inventory, now: Date.now, cachedModels };
  const speechStorage = createSpeechStorage({ ...stored, settings, speech, desired });
  const collector = createCollector({ ...stored, desired, router: router.snapshot, speech: speechStorage.files });
  const executor = createExecutor({
    handlers: {
      ...modelHandlers({
        ...stored,
        configPath: settings.configPath,
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
      ...speechStorage.handlers,
    },
    transfers: settings.transfers,
    now,
    onStarted: (action) => events.emit({ type: "actionStarted", action }),
    onProgress: (action, progress) => events.emit({ type: "actionProgressed", action, progress }),
    onSettled: (outcome) => events.emit({ type: "actionSettled", outcome }),
  });
  return { executor, collector, speechFiles: speechStorage.files };
}
