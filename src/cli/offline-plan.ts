// The plan of a gateway that is started now: reads the document and observes the machine, and changes nothing.
import { join } from "node:path";
import { createEvents } from "../app/events.ts";
import { openCache } from "../app/kept.ts";
import { createSpeech } from "../app/speech.ts";
import { openInventory } from "../cache/inventory/inventory.ts";
import { GatewayError } from "../core/errors.ts";
import { steadyNow } from "../core/steady.ts";
import { createEngineSource } from "../engines/llama/engine-source.ts";
import { createRouter } from "../engines/llama/router.ts";
import { createHubClient } from "../hub/client.ts";
import { createObserver } from "../observe/observe.ts";
import { plan } from "../plan/plan.ts";
import type { Settings } from "../settings/settings.ts";
import { readBytesIfPresent } from "../state/atomic-file.ts";
import { planBody } from "../status/report.ts";
import { offlineDocument } from "./offline-document.ts";

/** Errors: `invalid_request` without a document, `invalid_document`. */
export async function offlinePlan(settings: Settings): Promise<object> {
  const { stateDir, cacheDir, configPath, environment } = settings;
  const bytes = await readBytesIfPresent(configPath);
  if (bytes === null)
    throw new GatewayError(
      "invalid_request",
      `${configPath} is not there; \`${settings.command("serve")}\` writes a first one`,
    );
  const nothing = (): void => undefined;
  const presetPath = join(stateDir, "router.preset.ini");
  const engine = createEngineSource({
    explicit: settings.llamaServer,
    enginesDir: join(stateDir, "engines"),
    installCommand: settings.command("engine", "install", "llama"),
    environment,
    install: false,
    onProgress: nothing,
    onChange: nothing,
  });
  await engine.prepare(new AbortController().signal);
  const router = createRouter({
    presetPath,
    stateDir,
    cacheDir,
    environment,
    startTimeoutMs: 0,
    stopGraceMs: 0,
    reloadTimeoutMs: 0,
    pingMs: 0,
    now: steadyNow,
    onOutput: nothing,
    onChange: nothing,
    warn: nothing,
  });
  const inventory = await openInventory(stateDir, nothing);
  const desired = await offlineDocument(settings, bytes);
  const speech = createSpeech({
    settings,
    events: createEvents(),
    hub: createHubClient({ endpoint: settings.hubEndpoint, token: settings.hubToken, environment }),
    document: () => desired,
    now: steadyNow,
    onOutput: nothing,
    warn: nothing,
  });
  const observer = createObserver({
    scanner: openCache(cacheDir, inventory).scanner,
    cacheDir,
    presetPath,
    configPath,
    desired: () => desired,
    router,
    inventory: inventory.entries,
    engine,
    speech: speech.observe,
    workers: null,
    onNewEngine: nothing,
  });
  const found = plan(desired, await observer.observe(), {
    now: steadyNow(),
    backoff: new Map(),
    silenceLimitMs: settings.silenceLimitMs,
  });
  return planBody(found, 0, []);
}
