// The planner: the next actions on the way from observed to desired. Pure: no clock, no I/O, no log.
// State-gated: an action is planned only when the snapshot shows its precondition, so there is nothing to remember.
import { restartAfterCrash } from "../core/backoff.ts";
import { isCommit } from "../core/ids.ts";
import type { Desired, DesiredModel } from "../desired/document/document.ts";
import {
  type Action,
  backoffKey,
  type Candidate,
  type HeldAction,
  type Plan,
  type PlanContext,
  writesCache,
} from "./actions.ts";
import { findCached } from "./find-model.ts";
import { isChosenFor } from "./load-record.ts";
import { sourceState } from "./model-files.ts";
import {
  type CachedModel,
  type CacheSnapshot,
  isOfRepo,
  loadedModels,
  type Observed,
  type RouterSnapshot,
} from "./observed.ts";
import { effectiveValues, hasSource, type PresetFile, parsePreset } from "./preset-file.ts";
import { type PresetNotes, presetToWrite } from "./preset-to-write.ts";
import { duePrunes, type Going, isMarked, modelsToGo, planPruned, planRequested } from "./removals.ts";
import { lackingSpace } from "./room.ts";
import { planSpeech } from "./speech.ts";
import { note, reloadTookEffect } from "./wanted-preset.ts";
import { wantedWorkers } from "./workers.ts";

export function plan(desired: Desired, observed: Observed, context: PlanContext): Plan {
  const going = context.isReader ? nothingGoes : modelsToGo(desired, observed, context.now);
  const findings = new Map<string, string>();
  const models = [...planModels(desired, observed, findings), ...planRequested(going.requested, observed)];
  const due = duePrunes(going.pruned, models, context);
  const notes: PresetNotes = { findings, rolledBack: new Set(), autos: new Map() };
  const engine = planEngine(desired, observed, [...going.requested, ...due], notes, context);
  const speech = planSpeech(desired, observed, findings, context.now);
  const others = [...models, ...engine, ...speech];
  const pruned = planPruned(going.pruned, others, desired, observed, findings, context);
  const ready: Action[] = [];
  const held: HeldAction[] = [];
  for (const { action, notBefore = 0, waits, settles, prune, isUpkeep } of [...others, ...pruned]) {
    const failure = context.backoff.get(backoffKey(action));
    const missing = failure ? lackingSpace(failure, observed.freeBytes) : null;
    // One that found the disk too full is tried at once where there is space for it.
    const isRelieved = failure?.neededBytes !== undefined && missing === null && observed.freeBytes.state === "known";
    const entry = isRelieved ? undefined : failure;
    const until = Math.max(notBefore, entry?.until ?? 0);
    const hold = (why: HeldAction["why"], because: string, next: number | null = null): void =>
      void held.push({ action, why, because, until: next });
    const isSuspended = desired.suspend && isUpkeep !== true;
    if (context.isReader && writesCache(action.kind)) hold("writer", "another gateway stores it in the shared cache");
    else if (isSuspended) hold("suspended", "suspend is set in the document");
    else if (entry?.stalled) hold("stalled", `it failed: ${entry.message}`);
    else if (missing !== null)
      held.push({ action: withoutRoom(action, missing), why: "room", because: "the disk is too full", until: null });
    else if (prune) hold("prune", prune.because, prune.until);
    else if (until > context.now) hold("backoff", entry ? `it failed: ${entry.message}` : "it ended by itself", until);
    else if (settles && (context.settledAt ?? 0) > context.now)
      hold("settling", "the document has just changed", context.settledAt ?? null);
    else if (waits !== undefined) hold("waiting", waits);
    else ready.push(action);
  }
  const unmanaged = unmanagedModels(desired, observed);
  return { actions: ready, held, unmanaged, spared: going.spared, ...notes };
}

const nothingGoes = { requested: [], pruned: [], spared: [] } as const;

/** Not started: it would fail when the disk is full, and take the disk space from others until then. */
function withoutRoom(action: Action, missing: string): Action {
  return { ...action, reason: "DiskFull", message: `${action.message}: ${missing}` };
}

function planModels(desired: Desired, observed: Observed, findings: Map<string, string>): Candidate[] {
  if (observed.cache.state === "unknown") return [];
  const { models, unreadable } = observed.cache.value;
  const loaded = loadedNow(observed);
  return desired.models
    .filter((model) => !isOfRepo(model.id, unreadable))
    .flatMap((model) => {
      const cached = findCached(models, model.id);
      if (!cached || (cached.damage === null && !cached.complete)) return { action: fetchAction(model) };
      const again = (reason: string, why: string, verify?: { readonly verify: true }): Candidate => {
        const fetch = fetchAction(model);
        const disrupts = loaded.filter((id) => id === cached.upstreamId);
        return { action: { ...fetch, ...verify, reason, message: `${fetch.message}${why}`, disrupts } };
      };
      if (cached.damage !== null) return again("ModelDamaged", ` again, as ${cached.damage}`, { verify: true });
      const source = sourceState(model, observed);
      if (source === "changed") return again("SourceChanged", "");
      if (source === "missing") note(findings, cached.id, `its source ${model.source} does not exist`);
      return isOfAnotherRevision(model, cached, observed) ? again("RevisionChanged", ` at ${model.revision}`) : [];
    });
}

/** Without a revision in the document any cached one is good: a context size alone fetches nothing. */
function isOfAnotherRevision(
  { id, source, revision }: DesiredModel,
  { commit }: CachedModel,
  { inventory }: Observed,
): boolean {
  if (revision === undefined || source !== undefined) return false;
  const entry = inventory.find((own) => own.id.toLowerCase() === id.toLowerCase());
  // For a file of another program only a commit decides.
  return entry ? entry.revision !== revision : isCommit(revision) && commit !== revision;
}

type Fetch = Extract<Action, { kind: "model.pull" | "model.import" }>;

function fetchAction({ id, source, revision }: DesiredModel): Fetch {
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
  going: readonly Going[],
  notes: PresetNotes,
  context: PlanContext,
): Candidate[] {
  const { cache, preset, router } = observed;
  // Without the cache the sections of its models would look stale, without the file its owner's lines would be lost.
  if (cache.state === "unknown" || preset.state === "unknown") return [];
  const leaving = new Set(going.map(({ cached }) => cached));
  const { models } = cache.value;
  // The snapshot's own list has its index already.
  const kept = leaving.size === 0 ? models : models.filter((model) => !leaving.has(model));
  const { endpoints, unprobed } = wantedWorkers(desired, observed.workers);
  const { text, wanted } = presetToWrite(
    desired,
    kept,
    { ...observed, cache: cache.value, preset: preset.value, endpoints },
    notes,
  );
  const { contexts } = observed.loads;
  const unchosen = [...notes.autos].find(([id, settings]) => !isChosenFor(contexts.get(id), settings))?.[0];
  if (text !== preset.value.text || unchosen !== undefined) {
    const reason = preset.value.text === "" ? "PresetAbsent" : "PresetDiffers";
    // Of the reload after it, which the plan does not show yet: a resize of a loaded model once read as harmless.
    const disrupts = router.phase === "ready" ? reloadAction(observed, parsePreset(text), cache.value).disrupts : [];
    const action: Action = {
      kind: "preset.write",
      key: "preset",
      text,
      replaces: preset.value.text,
      reason,
      message: "write router.preset.ini",
      disrupts,
    };
    const write: Candidate = {
      action,
      // A worker that was not probed yet may be down: its first probe takes seconds at most.
      ...(unprobed > 0 ? { waits: "an RPC worker was not probed yet" } : {}),
      // Else the model would be loaded once more.
      ...(unchosen === undefined ? {} : { waits: `the context of ${unchosen} is being chosen` }),
      // A reload that no loaded model notices takes less time than the wait.
      settles: disrupts.length > 0,
    };
    // The router cannot start without a file.
    if (preset.value.text === "" && router.phase !== "ready") return [{ ...write, isUpkeep: true }];
    // If the new file cannot be written, the router runs with the old one.
    const refusal = context.backoff.get(backoffKey(action))?.code ?? "";
    const isRefused = ["disk_full", "state_unwritable"].includes(refusal);
    return desired.suspend || isRefused || unchosen !== undefined ? [write, ...planUpkeep(observed, context)] : [write];
  }
  const upkeep = planUpkeep(observed, context);
  if (upkeep.length > 0 || !isAnswering(router)) return upkeep;
  const listedByItself = kept
    .filter((model) => model.complete && model.routerId !== null)
    .map((model) => model.upstreamId);
  const expected = new Set([
    ...wanted.map((section) => section.name).filter((name) => name !== "*"),
    ...listedByItself,
  ]);
  return planReload(observed, preset.value, cache.value, [...expected]);
}

function isAnswering({ binary, phase, silentSince }: RouterSnapshot): boolean {
  return binary === "present" && phase === "ready" && silentSince === null;
}

/** Keeps the router running with the current preset file. */
function planUpkeep(observed: Observed, context: PlanContext): Candidate[] {
  const { router } = observed;
  if (router.binary !== "present") return [];
  if (router.phase === "stopped") {
    const reason = router.crashes.length > 0 ? "RouterCrashed" : "RouterStopped";
    const action: Action = { kind: "router.start", key: "router", reason, message: "start the router", disrupts: [] };
    return [{ action, notBefore: restartAfterCrash(router.crashes, context.now), isUpkeep: true }];
  }
  if (router.phase !== "ready" || router.silentSince === null) return [];
  if (context.now - router.silentSince < context.silenceLimitMs) return [];
  const action: Action = {
    kind: "router.restart",
    key: "router",
    reason: "RouterHung",
    message: "restart the router, which does not answer",
    disrupts: loadedNow(observed),
  };
  return [{ action, isUpkeep: true }];
}

function planReload(
  observed: Observed,
  preset: PresetFile,
  cache: CacheSnapshot,
  expected: readonly string[],
): Candidate[] {
  const { router } = observed;
  if (router.loadedPreset !== preset.text || router.loadedCache !== cache.signature) {
    const action = reloadAction(observed, preset, cache);
    // A folder that cannot be read just now is no reason to end the models that are served from it.
    const mayWait = router.loadedPreset === preset.text && action.disrupts.some((id) => isOfRepo(id, cache.unreadable));
    return mayWait ? [] : [{ action }];
  }
  if (
    router.models.state === "known" &&
    !router.freshlyStarted &&
    !reloadTookEffect(router.models.value, preset, expected)
  ) {
    const message = "restart the router, whose reload did not take the new settings";
    const disrupts = loadedNow(observed);
    return [{ action: { kind: "router.restart", key: "router", reason: "ReloadHadNoEffect", message, disrupts } }];
  }
  return [];
}

/** A reload unloads only models whose effective settings or files changed; the others continue. */
function reloadAction(observed: Observed, preset: PresetFile, cache: CacheSnapshot): Action {
  const { router } = observed;
  const before = parsePreset(router.loadedPreset ?? "");
  const byItself = new Set(cache.models.flatMap((model) => model.routerId ?? []));
  const listed = router.models.state === "known" ? router.models.value.map((model) => model.id) : [];
  const changes = [...new Set([...cache.models.map((model) => model.upstreamId), ...listed])].filter(
    (id) =>
      !(byItself.has(id) || hasSource(preset, id)) ||
      !sameValues(effectiveValues(before, id), effectiveValues(preset, id)),
  );
  const presetChanged = router.loadedPreset !== preset.text;
  return {
    kind: "router.reload",
    key: "router",
    reason: presetChanged ? "PresetChanged" : "CacheChanged",
    message: `reload the router's ${presetChanged ? "preset" : "model cache"}`,
    changes,
    disrupts: loadedNow(observed).filter((id) => changes.includes(id)),
  };
}

function sameValues(a: ReadonlyMap<string, string>, b: ReadonlyMap<string, string>): boolean {
  return a.size === b.size && [...a].every(([key, value]) => b.get(key) === value);
}

function loadedNow({ router }: Observed): string[] {
  return router.models.state === "known" ? loadedModels(router.models.value) : [];
}

function unmanagedModels(desired: Desired, observed: Observed): string[] {
  if (observed.cache.state === "unknown") return [];
  const { models } = observed.cache.value;
  const managed = new Set(desired.models.map((model) => findCached(models, model.id)?.id));
  const isGoing = (model: CachedModel): boolean => desired.removals.some((removal) => isMarked(removal, model));
  return models.filter((model) => !managed.has(model.id) && !isGoing(model)).map((model) => model.id);
}
