// The parts that see the machine and act on it: hub, router, engines, model cache. Also for the offline plan. Starts nothing.
import { join } from "node:path";
import type { Inventory } from "../cache/inventory/inventory.ts";
import { createDamage } from "../cache/scan/damage.ts";
import { createCachePresence } from "../cache/scan/presence.ts";
import { createCacheScanner } from "../cache/scan/scan.ts";
import { steadyNow } from "../core/steady.ts";
import type { Desired } from "../desired/document/document.ts";
import type { InstallProgress } from "../engines/install/install.ts";
import { createEngineSource } from "../engines/llama/engine-source.ts";
import { createRouter } from "../engines/llama/router.ts";
import { createHubClient } from "../hub/client.ts";
import { createObserver, type Observer } from "../observe/observe.ts";
import type { Workers } from "../rpc/workers.ts";
import type { Base } from "./events.ts";
import { createSpeech } from "./speech.ts";

export type Machine = ReturnType<typeof createMachine>;

export interface MachineOptions extends Base {
  readonly document: () => Desired;
  readonly inventory: Inventory;
  /** null: the state folder is not changed, so no engine is installed. */
  readonly onInstall: ((progress: InstallProgress) => void) | null;
}

export function createMachine(options: MachineOptions) {
  const { settings, events, document, inventory, onInstall } = options;
  const { stateDir, cacheDir, configPath, environment } = settings;
  const presetPath = join(stateDir, "router.preset.ini");
  const hub = createHubClient({ endpoint: settings.hubEndpoint, token: settings.hubToken, environment });
  const router = routerOf(options, presetPath);
  const engine = createEngineSource({
    explicit: settings.llamaServer,
    enginesDir: join(stateDir, "engines"),
    installCommand: settings.command("engine", "install", "llama"),
    environment,
    install: onInstall !== null && settings.installEngine,
    onProgress: (progress) => onInstall?.(progress),
    onChange: () => events.emit({ type: "changed" }),
  });
  const speech = createSpeech({ ...options, hub });
  const cache = openCache(cacheDir, inventory);
  const observerOf = (workers: Workers | null): Observer =>
    createObserver({
      scanner: cache.scanner,
      cacheDir,
      presetPath,
      configPath,
      desired: document,
      router,
      inventory: inventory.entries,
      engine,
      speech: speech.observe,
      workers,
      onNewEngine: () => events.emit({ type: "engineFound" }),
    });
  return { presetPath, hub, router, engine, speech, ...cache, observerOf };
}

/** The model cache, checked against what the inventory has of it. */
function openCache(cacheDir: string, inventory: Inventory) {
  const presence = createCachePresence(cacheDir, () => ({
    count: inventory.entries().length,
    place: inventory.place(),
  }));
  const damage = createDamage(cacheDir, inventory.entries);
  return { scanner: createCacheScanner(cacheDir, presence, inventory.entries, damage.has), presence, damage };
}

function routerOf({ settings, logger, warn, events }: Base, presetPath: string) {
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
    now: steadyNow,
    onOutput: (text) => logger.trace({ engine: "llama-server" }, text.trimEnd()),
    onChange: (event) => events.emit({ type: "routerChanged", event: event ?? null }),
    onList: () => events.emit({ type: "modelsListed" }),
    warn,
  });
}
