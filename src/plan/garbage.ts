// What of ours lies in the model cache and serves nobody: revisions that were superseded, blobs that nothing links, partials
// that nobody goes on with. Pure. Whatever is unknown, in use, or another program's stays.
import type { Desired } from "../desired/document.ts";
import type { CachedModel, InventoryEntry, Knowable } from "./observed.ts";
import { pathInRepo } from "./removals.ts";
import type { CacheSurvey, RepoFiles, RepoPartial } from "./repo-files.ts";

export interface GarbageItem {
  readonly repo: string;
  readonly kind: "revision" | "blob" | "partial" | "folder" | "speech";
  /** Relative to the model cache. */
  readonly path: string;
  /** Links and blobs that go. */
  readonly files: number;
  /** Bytes that become free. */
  readonly bytes: number;
  /** CamelCase. */
  readonly reason: string;
  readonly message: string;
}

/** A repository where something could go, and does not now. */
export interface SkippedRepo {
  readonly repo: string;
  readonly reason: string;
  readonly message: string;
}

/** What goes of one repository; paths are relative to its folder. */
export interface RepoGarbage {
  readonly repo: string;
  readonly items: readonly GarbageItem[];
  readonly links: readonly string[];
  /** Names of blobs, which go only if nothing links them then. */
  readonly blobs: readonly string[];
  readonly partials: readonly string[];
  readonly folders: readonly string[];
}

export interface Garbage {
  readonly repos: readonly RepoGarbage[];
  readonly skipped: readonly SkippedRepo[];
}

/** What was collected, or would be. */
export interface Collected {
  readonly items: readonly GarbageItem[];
  readonly skipped: readonly SkippedRepo[];
  readonly deletedFiles: number;
  readonly freedBytes: number;
}

export interface GarbageInput {
  readonly survey: CacheSurvey;
  readonly models: readonly CachedModel[];
  readonly inventory: readonly InventoryEntry[];
  readonly desired: Pick<Desired, "models" | "removals">;
  /** Ids of the models that the router has loaded or is loading; unknown while it does not answer. */
  readonly loaded: Knowable<readonly string[]>;
  /** Repositories (`owner/name`) with a pull or import under way. */
  readonly busy: readonly string[];
  /** ms */
  readonly now: number;
}

const hourMs = 3_600_000;
/** A pull of another gateway may wait for its hub for a while. */
const anothersMs = 24 * hourMs;

export function findGarbage(input: GarbageInput): Garbage {
  const repos: RepoGarbage[] = [];
  const skipped: SkippedRepo[] = input.survey.unreadable.map(({ repo, why }) => ({
    repo,
    reason: "Unreadable",
    message: why,
  }));
  for (const files of input.survey.repos) {
    const garbage = garbageOf(files, input);
    if (garbage.items.length === 0) continue;
    const obstacle = obstacleTo(files, input);
    if (obstacle) skipped.push({ repo: files.repo, ...obstacle });
    else repos.push(garbage);
  }
  return { repos, skipped };
}

function obstacleTo(
  { repo, othersAt }: RepoFiles,
  { loaded, busy, now }: GarbageInput,
): Omit<SkippedRepo, "repo"> | null {
  const isOf = (name: string): boolean => name.toLowerCase().startsWith(`${repo.toLowerCase()}:`);
  if (busy.some((other) => other.toLowerCase() === repo.toLowerCase()))
    return { reason: "BeingPulled", message: "a pull or import of it is under way" };
  if (othersAt !== null && now - othersAt < hourMs)
    return { reason: "AnotherProgram", message: "another program was at it within the last hour: its locks are fresh" };
  if (loaded.state === "unknown")
    return { reason: "Unknown", message: `which models are loaded is not known: ${loaded.why}` };
  const inUse = loaded.value.find(isOf);
  return inUse === undefined ? null : { reason: "ModelLoaded", message: `${inUse} is loaded: eject it first` };
}

function garbageOf(files: RepoFiles, input: GarbageInput): RepoGarbage {
  const { repo } = files;
  const entries = input.inventory.filter((entry) => entry.repo === repo);
  const { links, items: revisions } = staleLinks(files, entries, input);
  const { blobs, items: orphans } = loseBlobs(files, entries, links, input);
  const partials = files.partials.filter((partial) => isAbandoned(partial, input));
  const unfinished = partials.flatMap(({ paths }) => paths);
  const whole = new Set(files.blobs.map(({ name }) => `blobs/${name}`));
  const folders = files.emptyFolders.filter(({ modifiedAt }) => input.now - modifiedAt >= hourMs);
  return {
    repo,
    links: links.map(({ commit, path }) => `snapshots/${commit}/${path}`),
    blobs: [...blobs, ...unfinished.filter((path) => whole.has(path)).map((path) => path.slice("blobs/".length))],
    partials: unfinished.filter((path) => !whole.has(path)),
    folders: folders.map(({ path }) => path),
    items: [
      ...revisions.map((item) => ({ ...item, path: inCache(repo, item.path) })),
      ...orphans.map((item) => ({ ...item, path: inCache(repo, item.path) })),
      ...partials.map((partial) => partialItem(repo, partial)),
      ...folders.map(({ path }) => folderItem(repo, path)),
    ],
  };
}

interface StaleLink {
  readonly commit: string;
  readonly path: string;
  readonly blob: string;
}

/**
 * Links of ours in revisions that no ref and no entry of the inventory names. What is listed as a model from such a
 * revision is one: `rm` and `prune` are for that.
 */
function staleLinks(
  { repo, refs, snapshots, blobs }: RepoFiles,
  entries: readonly InventoryEntry[],
  { models, desired }: GarbageInput,
): { links: StaleLink[]; items: GarbageItem[] } {
  const named = new Set([...refs.map(({ commit }) => commit), ...entries.map(({ commit }) => commit)]);
  const ours = new Set(entries.flatMap((entry) => filesOf(entry).map(({ path, blob }) => `${blob} ${path}`)));
  const wanted = new Set(desired.models.map(({ id }) => id.toLowerCase()));
  const shown = new Set(
    models
      .filter((model) => model.repo === repo && (model.complete || wanted.has(model.id.toLowerCase())))
      .flatMap((model) =>
        [...model.files, ...(model.projector === null ? [] : [model.projector])].map(
          (file) => `${model.commit}/${pathInRepo(model, file)}`,
        ),
      ),
  );
  const links: StaleLink[] = [];
  const items: GarbageItem[] = [];
  const left = new Map<string, number>();
  for (const { blob } of snapshots.flatMap((snapshot) => snapshot.files))
    if (blob !== null) left.set(blob, (left.get(blob) ?? 0) + 1);
  const sizes = new Map(blobs.map(({ name, size }) => [name, size]));
  for (const { commit, files } of snapshots.filter((snapshot) => !named.has(snapshot.commit))) {
    const own = files.flatMap(({ path, blob }) =>
      blob !== null && ours.has(`${blob} ${path}`) && !shown.has(`${commit}/${path}`) ? [{ commit, path, blob }] : [],
    );
    if (own.length === 0) continue;
    links.push(...own);
    let bytes = 0;
    let freed = 0;
    for (const { blob } of own) {
      const rest = (left.get(blob) ?? 1) - 1;
      left.set(blob, rest);
      if (rest > 0) continue;
      bytes += sizes.get(blob) ?? 0;
      freed++;
    }
    items.push({
      repo,
      kind: "revision",
      path: `snapshots/${commit}`,
      files: own.length + freed,
      bytes,
      reason: "StaleRevision",
      message: `${own.length} file(s) of revision ${commit.slice(0, 12)}, which nothing names any more`,
    });
  }
  return { links, items };
}

/** Blobs of ours that nothing links once those links are gone. */
function loseBlobs(
  { repo, snapshots, blobs, partials }: RepoFiles,
  entries: readonly InventoryEntry[],
  stale: readonly StaleLink[],
  { desired }: GarbageInput,
): { blobs: string[]; items: GarbageItem[] } {
  const going = new Set(stale.map(({ commit, path }) => `${commit}/${path}`));
  const all = snapshots.flatMap(({ commit, files }) =>
    files.map((file) => ({ place: `${commit}/${file.path}`, file })),
  );
  const linked = new Set(all.flatMap(({ file }) => file.blob ?? []));
  const staying = new Set(all.flatMap(({ place, file }) => (going.has(place) ? [] : (file.blob ?? []))));
  const ours = new Set(entries.flatMap((entry) => filesOf(entry).map(({ blob }) => blob)));
  // A pull links again what is there of a model that is wanted, and a removal under way takes its own.
  const wanted = new Set(desired.models.map(({ id }) => id.toLowerCase()));
  const needed = new Set([
    ...entries
      .filter((entry) => entry.keep || wanted.has(entry.id.toLowerCase()))
      .flatMap((entry) => entry.files.map(({ blob }) => blob)),
    ...desired.removals.filter((removal) => removal.repo === repo).flatMap((removal) => removal.blobs),
    ...partials.flatMap(({ paths }) => paths.map((path) => path.slice("blobs/".length))),
  ]);
  const lost = blobs.filter(({ name }) => ours.has(name) && !staying.has(name) && !needed.has(name));
  return {
    blobs: lost.map(({ name }) => name),
    items: lost
      .filter(({ name }) => !linked.has(name))
      .map(({ name, size, names }) => ({
        repo,
        kind: "blob",
        path: `blobs/${name}`,
        files: 1,
        bytes: names > 1 ? 0 : size,
        reason: "OrphanBlob",
        message: "this gateway stored it, and nothing links it",
      })),
  };
}

function isAbandoned(
  { model, modifiedAt, isHeld, isAnothers, isShown }: RepoPartial,
  { desired, now }: GarbageInput,
): boolean {
  const isWanted = desired.models.some(({ id }) => id.toLowerCase() === model?.toLowerCase());
  if (isHeld || (isWanted && !isShown)) return false;
  return now - modifiedAt >= (isAnothers ? anothersMs : hourMs);
}

function partialItem(repo: string, { paths, bytes, model }: RepoPartial): GarbageItem {
  const what = model === null ? "an unfinished download" : `an unfinished download of ${model}`;
  return {
    repo,
    kind: "partial",
    path: inCache(repo, paths.find((path) => !path.includes(".journal.")) ?? paths[0] ?? ""),
    files: paths.length,
    bytes,
    reason: "AbandonedPartial",
    message: `${what}, which nobody goes on with`,
  };
}

function folderItem(repo: string, path: string): GarbageItem {
  const message = "an empty folder";
  return { repo, kind: "folder", path: inCache(repo, path), files: 0, bytes: 0, reason: "EmptyFolder", message };
}

/** Of the entry, and of what it was before. */
function filesOf({ files, former = [] }: InventoryEntry): readonly InventoryEntry["files"][number][] {
  return [...files, ...former.flatMap((revision) => revision.files)];
}

function inCache(repo: string, path: string): string {
  return `models--${repo.replace("/", "--")}${path === "" ? "" : `/${path}`}`;
}

/**
 * What the inventory still has to remember of an entry after these blobs were collected, by what lies there now; null:
 * nothing of it is left.
 */
export function rememberedEntry(
  entry: InventoryEntry,
  files: RepoFiles | null,
  collected: readonly string[],
): InventoryEntry | null {
  const blobs = new Set(files?.blobs.map(({ name }) => name) ?? []);
  const isThere = (revision: Pick<InventoryEntry, "files">): boolean =>
    revision.files.some(({ blob }) => blobs.has(blob));
  const { former: before = [], ...rest } = entry;
  const former = before.filter(isThere);
  if (former.length > 0) return { ...rest, former };
  return !isThere(entry) && entry.files.some(({ blob }) => collected.includes(blob)) ? null : rest;
}
