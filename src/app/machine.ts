// The parts that see the machine and act on it: hub, router, engines, model cache. Also for the offline plan. Starts nothing.
import { join } from "node:path";
import type { Mirror } from "../cache/download/sources.ts";
import { createRepoTurns } from "../cache/removal/repo-turns.ts";
import { createDamage } from "../cache/scan/damage.ts";
import { createCachePresence } from "../cache/scan/presence.ts";
import { cacheNow, createCacheScanner } from "../cache/scan/scan.ts";
import { steadyNow } from "../core/steady.ts";
import type { Desired } from "../desired/document/document.ts";
import type { InstallProgress } from "../engines/install/build.ts";
import { createEngineSource } from "../engines/llama/engine-source.ts";
import { createRouter } from "../engines/llama/router.ts";
import { createRouterLines } from "../engines/llama/router-lines.ts";
import type { EngineLogs } from "../engines/process/engine-logs.ts";
import { createCollector } from "../execute/cache-gc.ts";
import { createHubClient } from "../hub/client.ts";
import { readDocumentFiles } from "../observe/document-files.ts";
import { createHubQuestions } from "../observe/hub-answers.ts";
import { createObserver, type Observer } from "../observe/observe.ts";
import type { Observed } from "../plan/observed.ts";
import type { Workers } from "../rpc/workers.ts";
import type { Base } from "./events.ts";
import { createLogs, outputOf } from "./logs.ts";
import { createSpeech } from "./speech.ts";
import type { State } from "./state.ts";

export type Machine = ReturnType<typeof createMachine>;

/** `onInstall` null: the state folder is not changed, so no engine is installed. */
export function createMachine(
  options: Base & State & { readonly onInstall: ((progress: InstallProgress) => void) | null },
) {
  const { settings, events, store, inventory, loads, onInstall } = options;
  const { stateDir, cacheDir, configPath, environment } = settings;
  const presetPath = join(stateDir, "router.preset.ini");
  const hub = createHubClient({ endpoint: settings.hubEndpoint, token: settings.hubToken, environment });
  const mirror = createMirror(options);
  const logs = createLogs(options);
  const router = routerOf({ ...options, logs }, presetPath);
  const engine = createEngineSource({
    explicit: settings.llamaServer,
    enginesDir: join(stateDir, "engines"),
    installCommand: settings.command("engine", "install", "llama"),
    environment,
    install: onInstall !== null && settings.installEngine,
    onProgress: (progress) => onInstall?.(progress),
    onChange: () => events.emit("changed"),
  });
  const document = () => store.current().document;
  const speech = createSpeech({ ...options, hub, document, logs });
  // The model cache, checked against what the inventory has of it.
  const presence = createCachePresence(cacheDir, () => ({
    count: inventory.entries().length,
    place: inventory.place(),
  }));
  const damage = createDamage(cacheDir, inventory.entries);
  const scanner = createCacheScanner(cacheDir, presence, inventory.entries, damage.hashed);
  const askHub = createHubQuestions({ hub, lists: speech.lists, now: steadyNow });
  /** What another document than the current one lets the observer look at. */
  const observeFor = async (desired: Desired): Promise<Pick<Observed, "sources" | "documentFiles" | "speech">> => ({
    ...(await readDocumentFiles(configPath, desired)),
    speech: await speech.observe(desired),
  });
  const observerOf = (workers: Workers | null): Observer =>
    createObserver({
      scanner,
      cacheDir,
      presetPath,
      configPath,
      desired: document,
      router,
      inventory: inventory.entries,
      loads: loads.facts,
      engine,
      speech: speech.observe,
      workers,
      onNewEngine: () => events.emit("engineFound"),
    });
  const seen = { presence, damage, scanner, askHub, observerOf, observeFor };
  return { presetPath, hub, mirror, logs, router, engine, speech, ...seen };
}

/** What looks at the files of models and of speech, and removes them. */
export function createStorage(parts: Base & State & Machine) {
  const { settings, store, inventory, gatewayId, scanner, router, speech, hub, mirror } = parts;
  const cacheAccess = {
    cacheDir: settings.cacheDir,
    configPath: settings.configPath,
    inventory,
    gateway: gatewayId,
    hub,
    mirror,
    turns: createRepoTurns(),
    now: Date.now,
    desired: () => store.current().document,
    cachedModels: async () => (await cacheNow(scanner)).models,
  };
  const collector = createCollector({ ...speech, ...cacheAccess, router: router.snapshot });
  return { cacheAccess, collector };
}

/** ms after the start in which a mirror that is not reached is waited for: replicas may start at once. */
const mirrorStartMs = 60_000;

/** It never gets the hub's token. */
function createMirror({ settings, events, gatewayId }: Base & State): Mirror | null {
  const { hubMirror: endpoint, hubMirrorKey: token, environment } = settings;
  if (endpoint === undefined) return null;
  const startedAt = steadyNow();
  return {
    client: createHubClient({ endpoint, token, environment, caller: gatewayId }),
    isStarting: () => steadyNow() - startedAt < mirrorStartMs,
    onMiss: (repo, { message }) => events.emit("mirrorMissed", repo, message),
  };
}

function routerOf(options: Base & { readonly logs: EngineLogs }, presetPath: string) {
  const { settings, warn, events } = options;
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
    onOutput: outputOf(options, "llama-server", createRouterLines()),
    onKey: options.logs.hide,
    onChange: (event) => events.emit("routerChanged", event ?? null),
    onList: () => events.emit("modelsListed"),
    warn,
  });
}
