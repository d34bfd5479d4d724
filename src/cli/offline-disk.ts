// The contents of the model cache, without a running gateway. Changes nothing.
import type { DiskBody } from "../../schemas/disk.ts";
import { openCache } from "../app/kept.ts";
import { speechFolders } from "../app/speech.ts";
import { type Inventory, openInventory } from "../cache/inventory/inventory.ts";
import { createRepoTurns } from "../cache/removal/repo-turns.ts";
import { diskReport } from "../cache/report/disk-report.ts";
import { type Collected, previewOf } from "../cache/report/garbage.ts";
import { cacheNow } from "../cache/scan/scan.ts";
import type { Desired } from "../desired/document/document.ts";
import { createCollector, type Look } from "../execute/cache-gc.ts";
import { createSpeechStore, type SpeechStore } from "../execute/speech-files.ts";
import { readFreeBytes } from "../observe/observe.ts";
import type { Settings } from "../settings/settings.ts";
import { readBytesIfPresent } from "../state/atomic-file.ts";
import { openGatewayId } from "../state/gateway-id.ts";
import { openLastUsed } from "../state/last-used.ts";
import { offlineDocument } from "./offline-document.ts";

/** Errors: `cache_unwritable` where the cache cannot be read, `invalid_document`. */
export async function offlineReport(settings: Settings): Promise<DiskBody> {
  const { look, desired, inventory, speechFiles } = await offlineLook(settings);
  const lastUsed = await openLastUsed({ stateDir: settings.stateDir, now: Date.now, warn: () => undefined });
  const { speech, bytes: speechBytes } = await speechFiles.report(look.survey);
  const report = diskReport({
    ...look,
    inventory: inventory.entries(),
    desired,
    loaded: [],
    lastUsed: lastUsed.entries(),
    totals: new Map(),
    freeBytes: await readFreeBytes(settings.cacheDir),
  });
  return { ...report, speech, totals: { ...report.totals, speechBytes } } as DiskBody;
}

/** Errors: as {@link offlineReport}. */
export async function offlineCollection(settings: Settings): Promise<Collected> {
  return previewOf((await offlineLook(settings)).look.garbage);
}

async function offlineLook(settings: Settings): Promise<{
  readonly look: Look;
  readonly desired: Desired;
  readonly inventory: Inventory;
  readonly speechFiles: SpeechStore;
}> {
  const { cacheDir, stateDir } = settings;
  const desired = await offlineDocument(settings, await readBytesIfPresent(settings.configPath));
  const inventory = await openInventory(stateDir, () => undefined);
  const scanner = openCache(cacheDir, inventory).scanner;
  const turns = createRepoTurns();
  const speechFiles = createSpeechStore({
    ...speechFolders(stateDir),
    cacheDir,
    inventory,
    desired: () => desired,
    running: () => ({ transcription: null, synthesis: null }),
    turns,
    now: Date.now,
  });
  const collector = createCollector({
    cacheDir,
    gateway: await openGatewayId(stateDir, { write: async () => undefined }),
    inventory,
    speech: speechFiles,
    desired: () => desired,
    // Nothing is loaded where no gateway runs.
    router: () => ({ phase: "stopped", models: { state: "unknown", why: "" } }),
    turns,
    now: Date.now,
    cachedModels: async () => (await cacheNow(scanner)).models,
  });
  return { look: await collector.look(), desired, inventory, speechFiles };
}
