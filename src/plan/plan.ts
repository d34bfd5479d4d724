// The planner: what to do next so that what is observed becomes what is desired. Pure: no clock, no I/O, no log.
// State-gated: an action is planned only when the snapshot shows that its time has come, so there is nothing to remember.
import { restartAfterCrash } from "../core/backoff.ts";
import { isCommit } from "../core/ids.ts";
import type { Desired, DesiredModel } from "../desired/document.ts";
import { type Action, type BackoffEntry, backoffKey, type HeldAction, type Plan } from "./actions.ts";
import { type CachedModel, type CacheSnapshot, findCached, isOfRepo, loadedModels, type Observed } from "./observed.ts";
import { effectiveValues, hasSource, type PresetFile, parsePreset } from "./preset-file.ts";
import { type Goings, isMarked, isPresent, modelsToGo, planPruned, planRequested } from "./removals.ts";
import { renderPreset } from "./render-preset.ts";
import { createRoomCheck, type Needs, noNeeds } from "./room.ts";
import { planSpeech } from "./speech.ts";
import { reloadTookEffect, wantedSections } from "./wanted-preset.ts";
import { onlyTakesBack, presetEndpoints, wantedWorkers } from "./workers.ts";

export interface PlanContext {
  /** ms since the epoch. */
  readonly now: number;
  readonly backoff: ReadonlyMap<string, BackoffEntry>;
  /** A running router that answers nothing for this long hangs. */
  readonly silenceLimitMs: number;
  /** Before this (ms) the document is likely to change again: a router that runs is not told of it yet. */
  readonly settledAt?: number;
  /** Room that pulls need, as far as it is known; default: nothing is. */
  readonly needs?: Needs;
}

export function plan(desired: Desired, observed: Observed, context: PlanContext): Plan {
  const { needs = noNeeds } = context;
  const going = modelsToGo(desired, observed);
  const findings = new Map<string, string>();
  const engine = planEngine(desired, observed, going, findings, context);
  const candidates: Candidate[] = [
    ...planModels(desired, observed),
    ...planRequested(going.requested, observed),
    ...engine,
    ...planPruned(going.pruned, observed, engine, needs),
    ...planSpeech(desired, observed, findings, context.now),
  ];
  const ready: Action[] = [];
  const held: HeldAction[] = [];
  const lacking = createRoomCheck(observed.freeBytes, needs);
  for (const { action, notBefore, waits, settles } of candidates) {
    const entry = context.backoff.get(backoffKey(action));
    const until = Math.max(notBefore, entry?.until ?? 0);
    const missing = desired.suspend || entry?.stalled ? null : lacking(action);
    if (desired.suspend) held.push({ action, why: "suspended", until: null });
    else if (entry?.stalled) held.push({ action, why: "stalled", until: null });
    else if (missing !== null) held.push({ action: withoutRoom(action, missing), why: "room", until: null });
    else if (until > context.now) held.push({ action, why: "backoff", until });
    else if (settles && (context.settledAt ?? 0) > context.now)
      held.push({ action, why: "settling", until: context.settledAt ?? null });
    else if (waits) held.push({ action, why: "waiting", until: null });
    else ready.push(action);
  }
  return { actions: ready, held, unmanaged: unmanagedModels(desired, observed), spared: going.spared, findings };
}

/** Not started: it would fail when the disk is full, and take the room from others until then. */
function withoutRoom(action: Action, missing: string): Action {
  return { ...action, reason: "DiskFull", message: `${action.message}: ${missing}` };
}

interface Candidate {
  readonly action: Action;
  /** ms; 0: at once. */
  readonly notBefore: number;
  /** Something else comes first; told, as a plan that hid a deletion would mislead. */
  readonly waits?: boolean;
  /** A hundred changes in a second are to cost one reload. */
  readonly settles?: boolean;
}

function now(action: Action): Candidate {
  return { action, notBefore: 0 };
}

function planModels(desired: Desired, observed: Observed): Candidate[] {
  if (observed.cache.state === "unknown") return [];
  const { models, unreadable } = observed.cache.value;
  return desired.models
    .filter((model) => !isOfRepo(model.id, unreadable))
    .flatMap((model) => {
      if (!isPresent(models, model)) return now(fetchAction(model));
      return isOfAnotherRevision(model, observed) ? now(revisionAction(model)) : [];
    });
}

/**
 * The document names a revision, and what is here came from another one. Without a name whatever is here is good: a model
 * that was only given a context size is not fetched for it.
 */
function isOfAnotherRevision({ id, source, revision }: DesiredModel, { cache, inventory }: Observed): boolean {
  if (revision === undefined || source !== undefined || inventory.state === "unknown") return false;
  const entry = inventory.value.find((own) => own.id.toLowerCase() === id.toLowerCase());
  if (entry) return entry.revision !== revision;
  // Of another program's file only a commit says whether it is the right one.
  const cached = cache.state === "known" ? findCached(cache.value.models, id) : undefined;
  return isCommit(revision) && cached !== undefined && cached.commit !== revision;
}

function revisionAction({ id, revision }: DesiredModel): Action {
  const message = `pull ${id} at ${revision}`;
  return {
    kind: "model.pull",
    key: `model/${id}`,
    model: id,
    revision,
    reason: "RevisionChanged",
    message,
    disrupts: [],
  };
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
  going: Goings,
  findings: Map<string, string>,
  context: PlanContext,
): Candidate[] {
  const { cache, preset, router } = observed;
  // Without the cache the sections of its models would look stale, without the file its owner's lines would be lost.
  if (cache.state === "unknown" || preset.state === "unknown") return [];
  const leaving = new Set([...going.requested, ...going.pruned].map(({ cached }) => cached));
  const kept = cache.value.models.filter((model) => !leaving.has(model));
  const workers = observed.workers.state === "known" ? observed.workers.value : { workers: [], answering: false };
  const { endpoints, unprobed } = wantedWorkers(desired, workers, presetEndpoints(router.loadedPreset ?? ""));
  const wanted = wantedSections(desired, kept, endpoints, router.knownOptions, findings, observed.documentFiles);
  const text = renderPreset(preset.value, wanted, router.knownOptions, (name) =>
    isOfRepo(name, cache.value.unreadable),
  );
  if (text !== preset.value.text) {
    const reason = preset.value.text === "" ? "PresetAbsent" : "PresetDiffers";
    const action: Action = {
      kind: "preset.write",
      key: "preset",
      text,
      replaces: preset.value.text,
      reason,
      message: "write router.preset.ini",
      disrupts: [],
    };
    // A worker that nobody has looked at yet may be down: its first look takes seconds at most.
    return [{ action, notBefore: 0, waits: unprobed > 0, settles: router.phase === "ready" }];
  }
  if (router.binary !== "present") return [];
  const listedByItself = kept
    .filter((model) => model.complete && model.routerId !== null)
    .map((model) => model.upstreamId);
  const expected = new Set([
    ...wanted.map((section) => section.name).filter((name) => name !== "*"),
    ...listedByItself,
  ]);
  return planRouter(observed, preset.value, cache.value, [...expected], context);
}

function planRouter(
  observed: Observed,
  preset: PresetFile,
  cache: CacheSnapshot,
  expected: readonly string[],
  context: PlanContext,
): Candidate[] {
  const { router } = observed;
  if (router.phase === "stopped") {
    const reason = router.crashes.length > 0 ? "RouterCrashed" : "RouterStopped";
    const action: Action = { kind: "router.start", key: "router", reason, message: "start the router", disrupts: [] };
    return [{ action, notBefore: restartAfterCrash(router.crashes, context.now) }];
  }
  if (router.phase !== "ready") return [];
  if (router.silentSince !== null) {
    const action: Action = {
      kind: "router.restart",
      key: "router",
      reason: "RouterHung",
      message: "restart the router, which does not answer",
      disrupts: loadedNow(observed),
    };
    return context.now - router.silentSince >= context.silenceLimitMs ? [now(action)] : [];
  }
  if (router.loadedPreset !== preset.text || router.loadedCache !== cache.signature) {
    const action = reloadAction(observed, preset, cache);
    // A folder that cannot be read just now is no reason to end the models that are served from it.
    const mayWait = router.loadedPreset === preset.text && action.disrupts.some((id) => isOfRepo(id, cache.unreadable));
    return mayWait ? [] : [now(action)];
  }
  if (
    router.models.state === "known" &&
    !router.freshlyStarted &&
    !reloadTookEffect(router.models.value, preset, expected)
  ) {
    const message = "restart the router, whose reload did not take the new settings";
    return [
      now({
        kind: "router.restart",
        key: "router",
        reason: "ReloadHadNoEffect",
        message,
        disrupts: loadedNow(observed),
      }),
    ];
  }
  return [];
}

/** A reload unloads just the models whose effective settings changed or whose files went; the others go on. */
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
  const workers = observed.workers.state === "known" ? observed.workers.value.workers : [];
  return {
    kind: "router.reload",
    key: "router",
    yields: onlyTakesBack(router.loadedPreset ?? "", preset.text, workers),
    reason: presetChanged ? "PresetChanged" : "CacheChanged",
    message: `have the router read its ${presetChanged ? "preset" : "model cache"} again`,
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
