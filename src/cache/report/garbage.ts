// What of ours lies in the model cache and serves nobody: revisions that were superseded, blobs that nothing links, partials
// that nobody goes on with. Pure. Whatever is unknown, in use, or another program's stays.
import type { Desired } from "../../desired/document/document.ts";
import type { CachedModel, InventoryEntry, Knowable } from "../../plan/observed.ts";
import { inMiB } from "../../plan/room.ts";
import { type CacheSurvey, linkedBlobs, type RepoFiles, type RepoPartial } from "./repo-files.ts";
import { type StaleLink, type StaleRevision, staleRevisions } from "./stale-revisions.ts";
import { storedFiles } from "./stored.ts";

export interface GarbageItem {
  readonly repo: string;
  readonly kind: "revision" | "blob" | "partial" | "speech";
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
  readonly links: readonly { readonly commit: string; readonly path: string }[];
  /** Names of blobs, which go only if nothing links them then. */
  readonly blobs: readonly string[];
  readonly partials: readonly string[];
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
const anothersMs = 7 * 24 * hourMs;

export function findGarbage(input: GarbageInput): Garbage {
  const repos: RepoGarbage[] = [];
  const skipped: SkippedRepo[] = input.survey.unreadable.map(({ repo, why }) => ({
    repo,
    reason: "Unreadable",
    message: why,
  }));
  for (const files of input.survey.repos) {
    const { garbage, left } = garbageOf(files, input);
    const obstacle = garbage.items.length > 0 ? obstacleTo(files, input) : null;
    if (obstacle) skipped.push({ repo: files.repo, ...obstacle });
    else if (garbage.items.length > 0) repos.push(garbage);
    skipped.push(...left.map((why) => ({ repo: files.repo, ...why })));
  }
  return { repos, skipped };
}

/** What collecting would do. */
export function previewOf({ repos, skipped }: Garbage): Collected {
  return { items: repos.flatMap(({ items }) => items), skipped, deletedFiles: 0, freedBytes: 0 };
}

type Obstacle = Omit<SkippedRepo, "repo">;

function obstacleTo(
  { repo, othersAt, hasFolderLink }: RepoFiles,
  { loaded, busy, now }: GarbageInput,
): Obstacle | null {
  const isOf = (name: string): boolean => name.toLowerCase().startsWith(`${repo.toLowerCase()}:`);
  if (busy.some((other) => other.toLowerCase() === repo.toLowerCase()))
    return { reason: "BeingPulled", message: "a pull or import of it is under way" };
  if (othersAt !== null && now - othersAt < hourMs)
    return { reason: "AnotherProgram", message: "another program was at it within the last hour: its locks are fresh" };
  if (hasFolderLink)
    return { reason: "FolderLink", message: "a folder in its snapshots is a link, which is not followed" };
  if (loaded.state === "unknown")
    return { reason: "Unknown", message: `which models are loaded is not known: ${loaded.why}` };
  const inUse = loaded.value.find(isOf);
  return inUse === undefined ? null : { reason: "ModelLoaded", message: `${inUse} is loaded: eject it first` };
}

function garbageOf(files: RepoFiles, input: GarbageInput): { garbage: RepoGarbage; left: readonly Obstacle[] } {
  const { repo } = files;
  const entries = input.inventory.filter((entry) => entry.repo === repo);
  const stale = staleRevisions(files, entries, input);
  const links = stale.flatMap((revision) => revision.links);
  const { blobs, items: orphans } = loseBlobs(files, entries, links, input);
  const partials = files.partials.filter((partial) => isUnwanted(partial, input));
  const old = partials.filter(
    ({ modifiedAt, isAnothers }) => input.now - modifiedAt >= (isAnothers ? anothersMs : hourMs),
  );
  const unfinished = old.flatMap(({ paths }) => paths);
  const whole = new Set(files.blobs.map(({ name }) => `blobs/${name}`));
  const garbage = {
    repo,
    links,
    blobs: [...blobs, ...unfinished.filter((path) => whole.has(path)).map((path) => path.slice("blobs/".length))],
    partials: unfinished.filter((path) => !whole.has(path)),
    items: [
      ...stale.map((revision) => revisionItem(repo, revision)),
      ...orphans.map((item) => ({ ...item, path: inCache(repo, item.path) })),
      ...old.map((partial) => partialItem(repo, partial)),
    ],
  };
  return { garbage, left: partials.filter((partial) => !old.includes(partial)).map(youngPartial) };
}

function youngPartial({ bytes, model, isAnothers }: RepoPartial): Obstacle {
  const what = `an unfinished download${model === null ? "" : ` of ${model}`} (${inMiB(bytes)})`;
  const when = isAnothers ? "another gateway began it: it goes seven days" : "it goes an hour";
  return { reason: "TooYoung", message: `${what} stays for now: ${when} after it was last written` };
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
  const linked = linkedBlobs({ snapshots });
  const staying = new Set(all.flatMap(({ place, file }) => (going.has(place) ? [] : (file.blob ?? []))));
  const ours = new Set(
    entries.flatMap((entry) => storedFiles(entry).flatMap(({ blob, found }) => (found ? [] : [blob]))),
  );
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

function isUnwanted({ model, isHeld, isShown }: RepoPartial, { desired }: GarbageInput): boolean {
  const isWanted = desired.models.some(({ id }) => id.toLowerCase() === model?.toLowerCase());
  return !isHeld && (!isWanted || isShown);
}

function revisionItem(repo: string, { commit, links, files, bytes }: StaleRevision): GarbageItem {
  return {
    repo,
    kind: "revision",
    path: inCache(repo, `snapshots/${commit}`),
    files,
    bytes,
    reason: "StaleRevision",
    message: `${links.length} file(s) of revision ${commit.slice(0, 12)}, which nothing names any more`,
  };
}

function partialItem(repo: string, { paths, bytes, model }: RepoPartial): GarbageItem {
  const what = model === null ? "an unfinished download" : `an unfinished download of ${model}`;
  return {
    repo,
    kind: "partial",
    path: inCache(repo, paths.find((path) => /[0-9a-f]{40}\.gw\.incomplete$/.test(path)) ?? paths[0] ?? ""),
    files: paths.length,
    bytes,
    reason: "AbandonedPartial",
    message: `${what}, which nobody goes on with`,
  };
}

function inCache(repo: string, path: string): string {
  return `models--${repo.replace("/", "--")}${path === "" ? "" : `/${path}`}`;
}
