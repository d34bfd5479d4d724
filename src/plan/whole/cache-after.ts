// The model cache and the inventory after a pull, an import or a removal, as the handlers of the actions leave them. Pure.
import { type CachedRepo, commitOf, emptyRepo, withFiles, withoutFiles } from "../../cache/layout/cached-repo.ts";
import { fileNameFor, shardPaths } from "../../cache/layout/import-name.ts";
import { blobName, type HubFile } from "../../cache/layout/select.ts";
import { isCommit, type ModelId, parseModelId, repoOf } from "../../core/ids.ts";
import type { Removal } from "../../desired/document/document.ts";
import type { Action } from "../actions.ts";
import { findCached } from "../find-model.ts";
import type { CacheSnapshot, InventoryEntry, Observed } from "../observed.ts";
import { pathInRepo } from "../removals.ts";
import { prunedFiles, requestedFiles } from "../removed-files.ts";
import type { HubAnswer } from "./hub-answers.ts";
import { type Stored, unchanged, withRepo } from "./with-repo.ts";

/** Commits of revisions that the hub was not asked for. */
const unknownMain = "0".repeat(40);
const unknownOther = "f".repeat(40);

export function isKnownCommit(commit: string): boolean {
  return commit !== unknownMain && commit !== unknownOther;
}

/** Files without an answer of the hub: one that has the tag, in the commit that the cache has. */
export function afterPull(
  before: Observed,
  { model, revision = "main" }: Extract<Action, { kind: "model.pull" }>,
  answer: Extract<HubAnswer, { kind: "files" }> | null,
  now: number,
): Stored {
  const id = parseModelId(model);
  if (before.cache.state === "unknown" || !id) return unchanged(before);
  const repo = folderOf(before.cache.value, repoOf(id));
  const assumed = isCommit(revision)
    ? revision
    : (commitOf(repo, revision) ?? (revision === "main" ? unknownMain : unknownOther));
  const { commit, files, tree } = answer ?? {
    commit: assumed,
    files: filesOf(before.cache.value, id, model),
    tree: [],
  };
  const entry = entryOf(before, model, { repo: repo.repo, tag: id.tag, revision, commit, files }, now);
  const ref = isCommit(revision) ? null : revision;
  return withRepo(before, withFiles(repo, { commit, ref, files, tree, at: now }), putEntry(before, entry));
}

export function afterImport(
  before: Observed,
  { model, source }: Extract<Action, { kind: "model.import" }>,
  now: number,
): Stored {
  const id = parseModelId(model);
  if (before.cache.state === "unknown" || !id) return unchanged(before);
  const { path = source, stamp = "", bytes = 0 } = before.sources.get(source) ?? {};
  const names = shardPaths(path.replaceAll("\\", "/")).map((each) => each.slice(each.lastIndexOf("/") + 1));
  const repo = folderOf(before.cache.value, repoOf(id));
  const commit = commitOf(repo, "main") ?? unknownMain;
  const known = before.inventory.find((other) => other.id === model);
  const shown = repo.snapshots.find((snapshot) => snapshot.commit === commit)?.files ?? [];
  const files = names.map((name, index) => {
    const file = fileOf(id, name, index === 0 ? bytes : 0);
    // Imported before this was noted: of its size it is taken for the same.
    const same = shown.find((other) => other.path === file.path && other.size === file.size);
    return known?.source || !same?.blob ? file : { ...file, oid: same.blob };
  });
  const about = { repo: repo.repo, tag: id.tag, revision: "main", commit, files };
  const entry = { ...entryOf(before, model, about, now), source: { path, stamp: stamp ?? "" } };
  const brought = withFiles(repo, { commit, ref: "main", files, tree: [], at: now });
  // Two files with one tag are two models, and the old one could get the id.
  const others = before.inventory.filter((other) => other.repo === repo.repo && other.id !== model);
  const stay = [entry, ...others].flatMap((other) => other.files.map((file) => file.path));
  const gone = known?.files.filter((file) => !stay.includes(file.path)) ?? [];
  const alone = withoutFiles(brought, (file, of) => of === known?.commit && isOneOf(gone, file));
  return withRepo(before, alone, putEntry(before, entry));
}

/** A requested removal: its files in every revision, by their paths. */
export function afterRemoval(before: Observed, removal: Removal): Stored {
  if (before.cache.state === "unknown") return unchanged(before);
  const { entries, paths } = requestedFiles(removal, before.inventory, before.cache.value.models);
  const left = withoutFiles(folderOf(before.cache.value, removal.repo), ({ path }) => paths.includes(path));
  const inventory = before.inventory.filter((entry) => !entries.includes(entry));
  return withRepo(before, left, inventory);
}

/** What this gateway stored for the model, by the inventory; null: it has no entry. */
export function afterPrune(before: Observed, id: string): Stored | null {
  const entry = before.inventory.find((other) => other.id === id);
  if (before.cache.state === "unknown" || !entry) return null;
  const { files, commits } = prunedFiles(entry, before.inventory, before.cache.value.models);
  const repo = folderOf(before.cache.value, entry.repo);
  const left = withoutFiles(repo, (file, commit) => commits.has(commit) && isOneOf(files, file));
  const inventory = before.inventory.filter((other) => other !== entry);
  return withRepo(before, left, inventory);
}

/** Bytes that a pull downloads: blobs that are here and whole are not. */
export function bytesToPull(
  { cache }: Observed,
  model: string,
  { files }: Extract<HubAnswer, { kind: "files" }>,
  verify: boolean,
): number {
  const id = parseModelId(model);
  const snapshots = cache.state === "known" && id ? folderOf(cache.value, repoOf(id)).snapshots : [];
  const whole = snapshots.flatMap((snapshot) =>
    snapshot.files.flatMap(({ blob, size, damage }) => (damage === null && size !== null ? (blob ?? []) : [])),
  );
  const missing = new Map(files.map((file) => [blobName(file), file.size]));
  for (const blob of whole) missing.delete(blob);
  // A damaged file may have the right length: which one it is, the hashing finds.
  const total = [...missing.values()].reduce((sum, size) => sum + size, 0);
  return verify && total === 0 ? files.reduce((sum, { size }) => sum + size, 0) : total;
}

/** What the hub was not asked for: the files that are here, with their missing shards; else one that has the tag. */
function filesOf({ models, repos }: CacheSnapshot, id: ModelId, model: string): HubFile[] {
  const cached = findCached(models, model);
  const [first] = cached?.files ?? [];
  if (!cached || first === undefined) return [fileOf(id, "", 0)];
  const snapshots = repos.find(({ repo }) => repo === cached.repo)?.snapshots ?? [];
  const here = snapshots.find(({ commit }) => commit === cached.commit)?.files ?? [];
  const paths = [...shardPaths(first), ...(cached.projector === null ? [] : [cached.projector])];
  return paths.map((place) => {
    const path = pathInRepo(cached, place);
    const known = here.find((file) => file.path === path);
    return { path, size: known?.size ?? 0, oid: known?.blob ?? `expected ${path}` };
  });
}

function fileOf(id: ModelId, name: string, size: number): HubFile {
  const path = fileNameFor(id, name);
  return { path, size, oid: `expected ${path}` };
}

function isOneOf(
  stored: readonly { readonly path: string; readonly blob: string; readonly size: number }[],
  file: { readonly path: string; readonly blob: string | null; readonly size: number | null },
): boolean {
  return stored.some(
    (own) => own.path === file.path && (file.blob === null ? file.size === own.size : file.blob === own.blob),
  );
}

function folderOf(cache: CacheSnapshot, repo: string): CachedRepo {
  const found = cache.repos.find((other) => other.repo === repo);
  return found ?? emptyRepo(repo, `${cache.dir}/models--${repo.replace("/", "--")}`);
}

function entryOf(
  { inventory }: Observed,
  id: string,
  about: Pick<InventoryEntry, "repo" | "tag" | "revision" | "commit"> & { readonly files: readonly HubFile[] },
  now: number,
): InventoryEntry {
  const files = about.files.map((file) => ({ path: file.path, blob: blobName(file), size: file.size }));
  const known = inventory.find((entry) => entry.id === id);
  const entry = { ...about, id, files, addedAt: new Date(now).toISOString(), keep: known?.keep ?? false };
  return known ? { ...entry, former: [known, ...(known.former ?? [])] } : entry;
}

function putEntry({ inventory }: Observed, entry: InventoryEntry): readonly InventoryEntry[] {
  return [...inventory.filter(({ id }) => id !== entry.id), entry];
}
