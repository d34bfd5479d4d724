// What a gateway that is started now would find: its document, its plan, the contents of the model cache. Changes nothing.
import pino from "pino";
import type { DiskBody } from "../../schemas/disk.ts";
import type { PlanBody } from "../../schemas/plan.ts";
import { createBase } from "../app/events.ts";
import { createMachine } from "../app/machine.ts";
import { openInventory } from "../cache/inventory/inventory.ts";
import { createRepoTurns } from "../cache/removal/repo-turns.ts";
import { diskReport } from "../cache/report/disk-report.ts";
import { type Collected, previewOf } from "../cache/report/garbage.ts";
import { cacheNow } from "../cache/scan/scan.ts";
import { GatewayError } from "../core/errors.ts";
import { steadyNow } from "../core/steady.ts";
import {
  type Desired,
  emptyTree,
  mergeFile,
  sparedAfter,
  standingRemovals,
  toDesired,
} from "../desired/document/document.ts";
import { parseBytes } from "../desired/document/parse.ts";
import { readSavedDocument } from "../desired/saved.ts";
import { type Collector, createCollector } from "../execute/cache-gc.ts";
import { createSpeechStore } from "../execute/speech-files.ts";
import { readFreeBytes } from "../observe/observe.ts";
import { plan } from "../plan/plan.ts";
import type { Settings } from "../settings/settings.ts";
import { readBytesIfPresent } from "../state/atomic-file.ts";
import { openGatewayId } from "../state/gateway-id.ts";
import { openLastUsed } from "../state/last-used.ts";
import { planBody } from "../status/report.ts";

/** Errors: `invalid_request` without a document, `invalid_document`. */
export async function offlinePlan(settings: Settings): Promise<PlanBody> {
  const bytes = await readBytesIfPresent(settings.configPath);
  if (bytes === null)
    throw new GatewayError(
      "invalid_request",
      `${settings.configPath} is not there; \`${settings.command("serve")}\` writes a first one`,
    );
  const { desired, machine } = await openOffline(settings, bytes);
  await machine.engine.prepare(new AbortController().signal);
  const observed = await machine.observerOf(null).observe();
  const options = { now: steadyNow(), backoff: new Map(), silenceLimitMs: settings.silenceLimitMs };
  return planBody(plan(desired, observed, options), 0, []) as PlanBody;
}

/** Errors: `cache_unwritable` where the cache cannot be read, `invalid_document`. */
export async function offlineReport(settings: Settings): Promise<DiskBody> {
  const lastUsed = await openLastUsed({ stateDir: settings.stateDir, now: Date.now, warn: () => undefined });
  return diskReport({
    ...(await (await openCollector(settings)).look()),
    lastUsed: lastUsed.entries(),
    totals: new Map(),
    freeBytes: await readFreeBytes(settings.cacheDir),
  });
}

/** What `gc` would delete. Errors: as {@link offlineReport}. */
export async function offlineCollection(settings: Settings): Promise<Collected> {
  return previewOf((await (await openCollector(settings)).look()).garbage);
}

async function openCollector(settings: Settings): Promise<Collector> {
  const { desired, inventory, machine } = await openOffline(settings, await readBytesIfPresent(settings.configPath));
  const common = {
    cacheDir: settings.cacheDir,
    gateway: await openGatewayId(settings.stateDir, { write: async () => undefined }),
    inventory,
    desired: () => desired,
    turns: createRepoTurns(),
    now: Date.now,
    cachedModels: async () => (await cacheNow(machine.scanner)).models,
  };
  const speech = createSpeechStore({ ...common, ...machine.speech });
  return createCollector({ ...common, router: machine.router.snapshot, speech });
}

/** `bytes`: of gateway.yaml. */
async function openOffline(settings: Settings, bytes: Buffer | null) {
  const desired = await documentOf(settings, bytes);
  const inventory = await openInventory(settings.stateDir, () => undefined);
  const base = createBase(settings, pino({ level: "silent" }));
  const machine = createMachine({ ...base, document: () => desired, inventory, onInstall: null });
  return { desired, inventory, machine };
}

/** The saved document with the changes of the file since. Errors: `invalid_document`, with the first problem of the file. */
async function documentOf({ stateDir, configPath, presetAllow }: Settings, bytes: Buffer | null): Promise<Desired> {
  const saved = await readSavedDocument(stateDir, presetAllow);
  if (bytes === null) return toDesired(saved.tree, saved.removals, saved.spared);
  const parsed = parseBytes(bytes, presetAllow);
  if (!parsed.ok) {
    const [first] = parsed.problems;
    throw new GatewayError(
      "invalid_document",
      `${configPath}:${first?.line ?? 1}:${first?.column ?? 1}: ${first?.message ?? "invalid"}`,
    );
  }
  const before = saved.applied ?? emptyTree;
  const tree = mergeFile(saved.tree, before, parsed.tree);
  const file = { before, after: parsed.tree };
  const spared = sparedAfter(saved.spared, { before: saved.tree, after: tree, file });
  return toDesired(tree, standingRemovals(saved.removals, tree), spared);
}
