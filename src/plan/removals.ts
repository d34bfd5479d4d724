// Which models are deleted: requested removals, and with `prune` those that the document no longer names. Pure.
// Prune deletes last, once everything else of the document is in sync, and not before its time: a typo in an id, a rename whose pull
// takes hours and the first half of a save have all deleted a model that only seemed to have left.
import { type Desired, isNotNamedBy, type Removal } from "../desired/document/document.ts";
import type { Action, Candidate, PlanContext } from "./actions.ts";
import { findCached } from "./find-model.ts";
import { type CachedModel, type CacheSnapshot, type InventoryEntry, isOfRepo, type Observed } from "./observed.ts";

/** A model to delete; `cached` is undefined if its files are gone and only notes of it are left. */
export interface Going {
  readonly id: string;
  readonly cached: CachedModel | undefined;
}

/** A model that the document no longer names. */
export interface Pruned extends Going {
  /** ms: it stays until then. */
  readonly dueAt: number;
}

export interface Goings {
  readonly requested: readonly Going[];
  readonly pruned: readonly Pruned[];
  /** Would be pruned, but left the document when a list of models was emptied; by the ids of the inventory. */
  readonly spared: readonly string[];
}

/** Unknown keeps everything. */
export function modelsToGo(desired: Desired, observed: Observed, now: number): Goings {
  if (observed.cache.state === "unknown") return { requested: [], pruned: [], spared: [] };
  const { models, unreadable } = observed.cache.value;
  const { removals, allowEmpty } = desired;
  const requested = removals
    .filter(({ id }) => !isOfRepo(id, unreadable))
    .map((removal) => ({ id: removal.id, cached: models.find((model) => isMarked(removal, model)) }));
  // A removal takes what the inventory has of its model along.
  const prunable = modelsToPrune(desired, observed.inventory, observed.cache.value).filter(
    (entry) => !removals.some((removal) => removal.id === entry.id || coversEntry(removal, entry)),
  );
  // An emptied list is more often an accident than intent, also if a request has added models beside it.
  const idOf = resolverOf(models);
  const kept = new Set(desired.spared.map(idOf));
  const isSpared = ({ id }: InventoryEntry): boolean =>
    !allowEmpty && (desired.models.length === 0 || kept.has(idOf(id)));
  const pruned = prunable
    .filter((entry) => !isSpared(entry))
    // Of one whose leaving was not noted yet this is the first pass that misses it.
    .map((entry) => ({ entry, dueAt: (leftAtOf(entry) ?? now) + desired.pruneAfter * 1000 }))
    .map(({ entry: { id }, dueAt }) => ({ id, cached: findCached(models, id), dueAt }));
  return { requested, pruned, spared: prunable.filter(isSpared).map(({ id }) => id) };
}

/** Whether a removal means this model: by its files, as its id may be another model's once it is gone. */
export function isMarked(removal: Removal, model: CachedModel): boolean {
  return model.repo === removal.repo && model.files.every((file) => removal.files.includes(pathInRepo(model, file)));
}

/** Which models of an older snapshot of the cache are to be deleted, or are gone: `then` is the document of that snapshot. */
export function leavingSince(now: Desired, then: Desired | null): (model: CachedModel) => boolean {
  const removals = removalsSince(now, then);
  return (model) => removals.some((removal) => isMarked(removal, model));
}

/** Current ones, and those that have ended since: the older snapshot still has what they deleted. */
export function removalsSince(now: Desired, then: Desired | null): readonly Removal[] {
  if (then === null || then.removals === now.removals) return now.removals;
  const ended = then.removals.filter(({ id }) => !now.removals.some((removal) => removal.id === id));
  return [...now.removals, ...ended.filter(isNotNamedBy(now.models.map(({ id }) => id)))];
}

/** Whether an entry of the inventory is of a model that a removal means. */
export function coversEntry(removal: Removal, entry: InventoryEntry): boolean {
  return entry.repo === removal.repo && entry.files.some(({ path }) => removal.files.includes(path));
}

/** What a file of a cached model is called in its repository. */
export function pathInRepo({ commit }: CachedModel, file: string): string {
  const plain = file.replaceAll("\\", "/");
  const snapshot = `/snapshots/${commit}/`;
  return plain.slice(plain.lastIndexOf(snapshot) + snapshot.length);
}

/** ms; null where it is not noted. */
function leftAtOf({ leftAt }: InventoryEntry): number | null {
  const at = Date.parse(leftAt ?? "");
  return Number.isNaN(at) ? null : at;
}

/** A time in the future is of a clock that was wrong: the model would stay until then. */
export function withLeft(entry: InventoryEntry, hasLeft: boolean, at: number): InventoryEntry {
  const { leftAt: before, ...rest } = entry;
  if (!hasLeft) return before === undefined ? entry : rest;
  const since = leftAtOf(entry);
  return since !== null && since <= at ? entry : { ...entry, leftAt: new Date(at).toISOString() };
}

/** What gives each name of a model the same form. */
function resolverOf(models: readonly CachedModel[]): (name: string) => string {
  return (name) => (findCached(models, name)?.id ?? name).toLowerCase();
}

/** Ids of the inventory's entries whose model the document names, by any of its names; null: unknown. */
export function namedEntries(desired: Desired, { cache, inventory }: Observed): ReadonlySet<string> | null {
  if (cache.state === "unknown") return null;
  const idOf = resolverOf(cache.value.models);
  const named = new Set(desired.models.map(({ id }) => idOf(id)));
  return new Set(inventory.flatMap(({ id }) => (named.has(idOf(id)) ? id : [])));
}

/** What to prune, but for what is spared. Every guard must hold. */
function modelsToPrune(
  desired: Desired,
  inventory: readonly InventoryEntry[],
  { models, unreadable }: CacheSnapshot,
): readonly InventoryEntry[] {
  if (!desired.prune) return [];
  const idOf = resolverOf(models);
  // The document may name a cached model by another of its names, and two entries may mean one model.
  const stays = new Set([...desired.models, ...inventory.filter((entry) => entry.keep)].map(({ id }) => idOf(id)));
  const fetched = desired.models.filter(({ id }) => !findCached(models, id)?.complete).map(({ id }) => repoOfId(id));
  return inventory.filter((entry) => {
    if (stays.has(idOf(entry.id)) || isOfRepo(entry.id, unreadable)) return false;
    const cached = findCached(models, entry.id);
    // Another program's file may have taken the id: what is deleted must be what was put there.
    if (cached !== models.find((model) => holdsFilesOf(entry, model))) return false;
    // The entry may be an older name of what is being fetched.
    return cached !== undefined || !isOfRepo(entry.id, fetched);
  });
}

/** At once: the model is no longer offered, and its preset section goes right after it. */
export function planRequested(requested: readonly Going[], { preset }: Observed): Candidate[] {
  if (preset.state === "unknown") return [];
  return requested.map((going) => ({ action: removeAction(going, true, "RemovalRequested", `delete ${going.id}`) }));
}

/** Sections go before files go: a section whose model has vanished would become a phantom that hangs. */
function pruneAction(going: Pruned): Action {
  return removeAction(going, false, "NoLongerDesired", `delete ${going.id}, which the document no longer names`);
}

function repoOfId(id: string): string {
  return id.slice(0, Math.max(0, id.indexOf(":")));
}

function removeAction({ id, cached }: Going, requested: boolean, reason: string, message: string): Action {
  const disrupts = cached ? [cached.upstreamId] : [];
  return { kind: "model.remove", key: `model/${id}`, model: id, requested, reason, message, disrupts };
}

/** Their preset sections go now, and their files next: decided without preset and router, which that changes. */
export function duePrunes(
  pruned: readonly Pruned[],
  models: readonly Candidate[],
  context: PlanContext,
): readonly Pruned[] {
  const isPulling = othersUnderWay(pruned, context).some((key) => key.startsWith("model/"));
  return models.length > 0 || isPulling ? [] : pruned.filter(({ dueAt }) => dueAt <= context.now);
}

/** `others`: what else is planned. */
export function planPruned(
  pruned: readonly Pruned[],
  others: readonly Candidate[],
  desired: Desired,
  observed: Observed,
  findings: ReadonlyMap<string, string>,
  context: PlanContext,
): Candidate[] {
  // Which sections there are is not known.
  if (observed.preset.state === "unknown") return [];
  const [planned] = others;
  const [underWay] = othersUnderWay(pruned, context);
  const first =
    planned?.action.message ??
    (underWay === undefined ? null : `${underWay} is in progress`) ??
    notInSync(desired, observed, findings);
  return pruned.map((going) => {
    const candidate = { action: pruneAction(going) };
    const isDue = going.dueAt <= context.now;
    if (isDue && first === null) return candidate;
    const because = [
      ...(isDue ? [] : [`a model stays for ${desired.pruneAfter} s after it left the document`]),
      ...(first === null ? [] : [`everything else comes first: ${first}`]),
    ];
    return { ...candidate, prune: { because: because.join("; "), until: isDue ? null : going.dueAt } };
  });
}

function othersUnderWay(pruned: readonly Pruned[], { underWay = [] }: PlanContext): string[] {
  return underWay.filter((key) => !pruned.some(({ id }) => key === `model/${id}`));
}

/** Why the document is not in force although nothing else is planned; null: it is. */
function notInSync(
  { models }: Desired,
  { cache, preset, router }: Observed,
  findings: ReadonlyMap<string, string>,
): string | null {
  const [left] = findings.values();
  if (left !== undefined) return left;
  const unseen = models.find(({ id }) => cache.state === "known" && isOfRepo(id, cache.value.unreadable));
  if (unseen) return `the folder of ${unseen.id} in the model cache cannot be read`;
  const isInForce = preset.state === "known" && router.loadedPreset === preset.value.text;
  if (isInForce && router.phase === "ready" && router.silentSince === null) return null;
  return "the router does not run with the preset file as it is";
}

/** The inventory's record of a cached file: by its blob, or by its place if it is no link. */
export function storedFile(
  inventory: readonly InventoryEntry[],
  file: { readonly repo: string; readonly commit: string; readonly path: string; readonly blob: string | null },
): InventoryEntry["files"][number] | undefined {
  const revisions = inventory.flatMap((entry) => (entry.repo === file.repo ? [entry, ...(entry.former ?? [])] : []));
  return revisions
    .flatMap(({ commit, files }) => (file.blob !== null || commit === file.commit ? files : []))
    .find(({ path, blob }) => (file.blob === null ? path === file.path : blob === file.blob));
}

/** By name and content, of a plain file by its revision: another program may have stored the same name from another one. */
export function holdsFilesOf(entry: InventoryEntry, model: CachedModel): boolean {
  if (model.repo !== entry.repo) return false;
  const stored = [entry, ...(entry.former ?? [])];
  return model.files.every((file, index) => {
    const blob = model.blobs[index] ?? null;
    const place = file.replaceAll("\\", "/");
    return stored.some(({ commit, files }) =>
      files.some(
        (own) =>
          place.endsWith(`/snapshots/${model.commit}/${own.path}`) &&
          (blob === null ? commit === model.commit : own.blob === blob),
      ),
    );
  });
}
