// What a gateway that is started now would find: its document, its plan, the contents of the model cache. Changes nothing.

import pino from "pino";
import type { DiskBody } from "../../schemas/disk.ts";
import type { DocumentInput } from "../../schemas/document.ts";
import type { PlanBody } from "../../schemas/plan.ts";
import { createBase } from "../app/events.ts";
import { createMachine, createStorage } from "../app/machine.ts";
import { createMemoryFacts } from "../app/memory.ts";
import { planRules } from "../app/plan-rules.ts";
import { openState } from "../app/state.ts";
import { readFreeBytes } from "../cache/download/disk-space.ts";
import { diskReport } from "../cache/report/disk-report.ts";
import { type Collected, previewOf } from "../cache/report/garbage.ts";
import { GatewayError } from "../core/errors.ts";
import { steadyNow } from "../core/steady.ts";
import { toInput } from "../desired/document/document.ts";
import { parseBytes } from "../desired/document/parse.ts";
import { hashOfText } from "../desired/parse-apart.ts";
import { createHubNeeds } from "../memory/hub-needs.ts";
import { plannedMemory } from "../memory/planned.ts";
import type { RunningAction } from "../plan/actions.ts";
import { wholePlan } from "../reconcile/whole-plan.ts";
import type { Settings } from "../settings/settings.ts";
import { readBytesIfPresent } from "../state/atomic-file.ts";
import { untouchedFiles } from "../state/state-folder.ts";
import { planBody } from "../status/plan-body.ts";
import type { DocumentFile } from "./document-file.ts";

/**
 * `file`: in place of the settings' document. `isOffline`: the hub is not asked. Errors: `invalid_request` without a document,
 * `invalid_document`.
 */
export async function offlinePlan(
  settings: Settings,
  { file, isOffline }: { readonly file: DocumentFile | null; readonly isOffline: boolean },
): Promise<PlanBody> {
  const parts = await openOffline(settings, file);
  const { hasFile, store, engine, hub, askHub, observerOf } = parts;
  if (!hasFile) throw noDocument(settings);
  await engine.prepare(new AbortController().signal);
  const observed = await observerOf(null).observe();
  const running: RunningAction[] = [];
  const whole = await wholePlan({
    desired: store.current().document,
    observed,
    context: {
      now: steadyNow(),
      backoff: new Map(),
      ...planRules(settings),
    },
    running,
    inFlight: new Map(),
    memory: new Map(),
    askHub: isOffline ? null : askHub,
  });
  const facts = createMemoryFacts(parts);
  await facts.see(store.current().document, observed);
  const over = new AbortController();
  const memory = await plannedMemory(facts, createHubNeeds({ hub, memory: facts, over: over.signal }), observed, whole);
  over.abort();
  await Promise.all([hub.close(), facts.close()]);
  return planBody({ ...whole, memory, generation: 0, running }) as PlanBody;
}

/** Errors: `invalid_request` where there is none, `invalid_document`, with the first problem of the file. */
export async function offlineDocument(settings: Settings): Promise<DocumentInput> {
  const { hasFile, store } = await openOffline(settings);
  const { generation, tree } = store.current();
  // A wrong --state gave an empty document, as if the gateway had one.
  if (!hasFile && generation === 0) throw noDocument(settings);
  return toInput(tree);
}

function noDocument({ configPath, command }: Settings): GatewayError {
  return new GatewayError("invalid_request", `${configPath} is not there; \`${command("serve")}\` writes a first one`);
}

/** Errors: `cache_unwritable` where the cache cannot be read, `invalid_document`. */
export async function offlineReport(settings: Settings): Promise<DiskBody> {
  const parts = await openOffline(settings);
  return diskReport({
    ...(await createStorage(parts).collector.look()),
    lastUsed: parts.lastUsed.entries(),
    totals: new Map(),
    needOf: () => null,
    freeBytes: await readFreeBytes(settings.cacheDir),
  });
}

/** What `gc` would delete. Errors: as {@link offlineReport}. */
export async function offlineCollection(settings: Settings): Promise<Collected> {
  return previewOf((await createStorage(await openOffline(settings)).collector.look()).garbage);
}

/** The saved document has the changes of the file since. Errors: `invalid_document`, with the first problem of the file. */
async function openOffline(settings: Settings, given: DocumentFile | null = null) {
  const { presetAllow } = settings;
  const configPath = given?.name ?? settings.configPath;
  const base = createBase(settings, pino({ level: "silent" }));
  const state = await openState(base, untouchedFiles);
  const bytes = given?.bytes ?? (await readBytesIfPresent(configPath));
  if (bytes !== null) {
    const parsed = parseBytes(bytes, presetAllow);
    if (!parsed.ok) {
      const { line, column, message } = parsed.problems[0] ?? { line: 1, column: 1, message: "invalid" };
      throw new GatewayError("invalid_document", `${configPath}:${line}:${column}: ${message}`);
    }
    await state.store.applyFile(parsed.tree, "file", { sha256: hashOfText(bytes) });
  }
  return { ...base, ...state, ...createMachine({ ...base, ...state, onInstall: null }), hasFile: bytes !== null };
}
