// The planner: what to do next so that what is observed becomes what is desired. Pure: no clock, no I/O, no log.
// State-gated: an action is planned only when the snapshot shows that its time has come, so there is nothing to remember.
import { restartAfterCrash } from "../core/backoff.ts";
import type { Desired, DesiredModel } from "../desired/document.ts";
import { type Action, type BackoffEntry, backoffKey, type HeldAction, type Plan } from "./actions.ts";
import { type CachedModel, type CacheSnapshot, findCached, type InventoryEntry, type Observed } from "./observed.ts";
import { effectiveValues, parsePreset, type PresetFile } from "./preset-file.ts";
import { renderPreset } from "./render-preset.ts";
import { reloadTookEffect, wantedSections } from "./wanted-preset.ts";

export interface PlanContext {
  /** ms since the epoch. */
  readonly now: number;
  readonly backoff: ReadonlyMap<string, BackoffEntry>;
  /** A running router that answers nothing for this long hangs. */
  readonly silenceLimitMs: number;
}

export function plan(desired: Desired, observed: Observed, context: PlanContext): Plan {
  const removals = modelsToRemove(desired, observed);
  const findings = new Map<string, string>();
  const candidates = [
    ...planModels(desired, observed),
    ...planEngine(desired, observed, removals, findings, context),
    ...planRemovals(removals, desired, observed, context),
  ];
  const ready: Action[] = [];
  const held: HeldAction[] = [];
  for (const { action, notBefore } of candidates) {
    const entry = context.backoff.get(backoffKey(action));
    const until = Math.max(notBefore, entry?.until ?? 0);
    if (desired.suspend) held.push({ action, why: "suspended", until: null });
    else if (entry?.stalled) held.push({ action, why: "stalled", until: null });
    else if (until > context.now) held.push({ action, why: "backoff", until });
    else ready.push(action);
  }
  return { actions: ready, held, unmanaged: unmanagedModels(desired, observed), findings };
}

interface Candidate {
  readonly action: Action;
  /** ms; 0: at once. */
  readonly notBefore: number;
}

function now(action: Action): Candidate {
  return { action, notBefore: 0 };
}

function planModels(desired: Desired, observed: Observed): Candidate[] {
  if (observed.cache.state === "unknown") return [];
  const { models, unreadable } = observed.cache.value;
  return desired.models
    .filter((model) => !isPresent(models, model) && !unreadable.includes(model.id.slice(0, model.id.indexOf(":"))))
    .map((model) => now(fetchAction(model)));
}

function isPresent(models: readonly CachedModel[], model: DesiredModel): boolean {
  return findCached(models, model.id)?.complete === true;
}

function fetchAction({ id, source, revision }: DesiredModel): Action {
  const base = { key: `model/${id}`, model: id, disrupts: [] };
  if (source !== undefined) {
    return { ...base, kind: "model.import", source, reason: "ModelAbsent", message: `import ${id} from ${source}` };
  }
  return { ...base, kind: "model.pull", revision, reason: "ModelAbsent", message: `pull ${id}` };
}

/** Preset and router, in the order in which they depend on each other. */
function planEngine(
  desired: Desired,
  observed: Observed,
  removals: readonly InventoryEntry[],
  findings: Map<string, string>,
  context: PlanContext,
): Candidate[] {
  const { cache, preset, router } = observed;
  // Without the cache the sections of its models would look stale, without the file its owner's lines would be lost.
  if (cache.state === "unknown" || preset.state === "unknown") return [];
  const kept = cache.value.models.filter((model) => !removals.some((entry) => isEntryOf(entry, model)));
  const wanted = wantedSections(desired, kept, router.knownOptions, findings);
  const text = renderPreset(preset.value, wanted, router.knownOptions);
  if (text !== preset.value.text) {
    const reason = preset.value.text === "" ? "PresetAbsent" : "PresetDiffers";
    return [now({ kind: "preset.write", key: "preset", text, reason, message: "write router.preset.ini", disrupts: [] })];
  }
  if (router.binary !== "present") return [];
  return planRouter(observed, preset.value, cache.value, wanted.map((section) => section.name), context);
}

function planRouter(observed: Observed, preset: PresetFile, cache: CacheSnapshot, sections: readonly string[], context: PlanContext): Candidate[] {
  const { router } = observed;
  if (router.phase === "stopped") {
    const reason = router.crashes.length > 0 ? "RouterCrashed" : "RouterStopped";
    const action: Action = { kind: "router.start", key: "router", reason, message: "start the router", disrupts: [] };
    return [{ action, notBefore: restartAfterCrash(router.crashes, context.now) }];
  }
  if (router.phase !== "ready") return [];
  if (router.silentSince !== null) {
    const action: Action = { kind: "router.restart", key: "router", reason: "RouterHung", message: "restart the router, which does not answer", disrupts: loadedModels(observed) };
    return context.now - router.silentSince >= context.silenceLimitMs ? [now(action)] : [];
  }
  if (router.loadedPreset !== preset.text || router.loadedCache !== cache.signature) {
    return [now(reloadAction(observed, preset, cache))];
  }
  if (router.models.state === "known" && !router.freshlyStarted && !reloadTookEffect(router.models.value, preset, sections)) {
    const message = "restart the router, whose reload did not take the new settings";
    return [now({ kind: "router.restart", key: "router", reason: "ReloadHadNoEffect", message, disrupts: loadedModels(observed) })];
  }
  return [];
}

/** A reload unloads just the models whose effective settings changed or whose files went; the others go on. */
function reloadAction(observed: Observed, preset: PresetFile, cache: CacheSnapshot): Action {
  const { router } = observed;
  const before = parsePreset(router.loadedPreset ?? "");
  const disrupts = loadedModels(observed).filter((id) => {
    const served = cache.models.some((model) => model.upstreamId === id);
    return !served || !sameValues(effectiveValues(before, id), effectiveValues(preset, id));
  });
  const presetChanged = router.loadedPreset !== preset.text;
  return {
    kind: "router.reload",
    key: "router",
    reason: presetChanged ? "PresetChanged" : "CacheChanged",
    message: `have the router read its ${presetChanged ? "preset" : "model cache"} again`,
    disrupts,
  };
}

function sameValues(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean {
  return a.size === b.size && [...a].every(([key, value]) => b.get(key) === value);
}

function loadedModels({ router }: Observed): string[] {
  if (router.models.state === "unknown") return [];
  return router.models.value.filter((model) => model.value !== "unloaded" && model.value !== "downloading").map((model) => model.id);
}

/** Inventory entries to prune. Every guard must hold; whatever is unknown keeps everything. */
export function modelsToRemove(desired: Desired, observed: Observed): InventoryEntry[] {
  if (!desired.prune || observed.inventory.state === "unknown" || observed.cache.state === "unknown") return [];
  // An emptied list is more often an accident than a wish.
  if (desired.models.length === 0 && !desired.allowEmpty) return [];
  const { models } = observed.cache.value;
  const wanted = new Set(desired.models.flatMap((model) => [model.id.toLowerCase(), findCached(models, model.id)?.id.toLowerCase() ?? ""]));
  return observed.inventory.value.filter((entry) => {
    if (entry.keep || wanted.has(entry.id.toLowerCase())) return false;
    const cached = models.find((model) => isEntryOf(entry, model));
    // The document may name the cached model by another of its names.
    return !cached || !wanted.has(cached.id.toLowerCase());
  });
}

function isEntryOf(entry: InventoryEntry, model: CachedModel): boolean {
  const folded = entry.id.toLowerCase();
  return model.id.toLowerCase() === folded || model.aliases.some((alias) => alias.toLowerCase() === folded);
}

/** Sections go before files go: a section whose model has vanished would become a phantom that hangs. */
function planRemovals(removals: readonly InventoryEntry[], desired: Desired, observed: Observed, context: PlanContext): Candidate[] {
  if (removals.length === 0 || observed.preset.state === "unknown") return [];
  const { router, preset } = observed;
  const settled = router.phase === "stopped" || (router.phase === "ready" && router.loadedPreset === preset.value.text);
  if (!settled) return [];
  const findings = new Map<string, string>();
  const engineFirst = planEngine(desired, observed, removals, findings, context).some(({ action }) => action.kind === "preset.write");
  if (engineFirst) return [];
  return removals.map(({ id }) =>
    now({ kind: "model.remove", key: `model/${id}`, model: id, reason: "NoLongerDesired", message: `delete ${id}, which the document no longer names`, disrupts: [id] }),
  );
}

function unmanagedModels(desired: Desired, observed: Observed): string[] {
  if (observed.cache.state === "unknown") return [];
  const { models } = observed.cache.value;
  const managed = new Set(desired.models.map((model) => findCached(models, model.id)?.id));
  return models.filter((model) => !managed.has(model.id)).map((model) => model.id);
}
