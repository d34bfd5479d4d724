// Deletes files from a repository's folder of the cache: links first, then the blobs that no link shows any more, then empty
// folders. Links to folders are not followed: a revision behind one stays, and so do blobs that it may show.
// A crash in between leaves unlinked blobs and empty folders, which the next try finds by the names it is given.
import type { Stats } from "node:fs";
import { lstat, readdir, readFile, readlink, realpath, rm } from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { ignoreAbsent, ignoreDangling } from "../../core/errors.ts";
import { isCommit } from "../../core/ids.ts";
import { orCacheError } from "../../hub/errors.ts";
import { removeIfEmpty } from "../../state/folder.ts";
import { isHeld } from "../download/in-use.ts";
import { shownBlobs } from "../download/link.ts";
import { blobPath, type CachedFile, isDigest, isSafePath, partialPath, repoFolder } from "../layout/layout.ts";

export interface RemovedModel {
  readonly deletedFiles: number;
  readonly freedBytes: number;
}

/** Deletes a model wherever the repository shows it, whichever program put it there: for a person who asked for it. */
export async function removeModel(options: {
  readonly cacheDir: string;
  /** `owner/name` */
  readonly repo: string;
  /** In the repository; they go in every revision: else an older one would come back. */
  readonly paths: readonly string[];
  /** Further blobs that belonged to the model. */
  readonly blobs: readonly string[];
  /** Its revisions, also those that an earlier try emptied. */
  readonly commits: readonly string[];
}): Promise<RemovedModel> {
  const { cacheDir, repo, paths } = options;
  const all = await orCacheError(repo, () =>
    readdir(join(repoFolder(cacheDir, repo), "snapshots")).catch(ignoreAbsent),
  );
  const places = paths.flatMap((path) => (all ?? []).map((commit) => ({ commit, path })));
  return (await sweep({ ...options, places })).removed;
}

/** A file that this gateway stored, and the revision that it linked it into. */
export interface StoredLink extends CachedFile {
  readonly commit: string;
}

/** Deletes what this gateway stored and nothing else: links that lead to these blobs, and blobs that nothing else shows. */
export async function removeStored(options: {
  readonly cacheDir: string;
  /** `owner/name` */
  readonly repo: string;
  readonly links: readonly StoredLink[];
}): Promise<RemovedModel> {
  const { links } = options;
  const stored = new Set(links.flatMap(({ blob, found }) => (found ? [] : [blob])));
  const { removed } = await sweep({
    ...options,
    places: links.map(({ commit, path, blob, size }) => ({ commit, path, only: { blob, size } })),
    blobs: [...stored],
    // Found here when it was pulled: the link to it is ours, the blob is not.
    spared: links.flatMap(({ blob }) => (stored.has(blob) ? [] : [blob])),
    commits: links.map(({ commit }) => commit),
  });
  return removed;
}

/** Deletes garbage. Also answers with the blobs that went. Errors: `cache_unwritable`. */
export async function collectRepo(options: {
  readonly cacheDir: string;
  /** `owner/name` */
  readonly repo: string;
  readonly links: readonly Place[];
  /** Names of blobs; one that is linked by now stays. */
  readonly blobs: readonly string[];
  /** Relative to the repository's folder. */
  readonly partials: readonly string[];
}): Promise<RemovedModel & { readonly blobs: readonly string[] }> {
  const { cacheDir, repo, links, partials } = options;
  const root = repoFolder(cacheDir, repo);
  const swept = await sweep({
    ...options,
    places: links,
    files: partials.filter(isSafePath).map((path) => join(root, path)),
    // Chosen with their blobs: of a link alone the blob is not known to be ours.
    onlyThese: true,
    commits: links.map(({ commit }) => commit),
  });
  return { ...swept.removed, blobs: swept.blobs };
}

interface Place {
  /** Name of a folder in `snapshots/`. */
  readonly commit: string;
  /** In the repository, with `/`. */
  readonly path: string;
  /** Goes only where it shows this. */
  readonly only?: Pick<CachedFile, "blob" | "size">;
}

interface Sweep {
  readonly cacheDir: string;
  readonly repo: string;
  readonly places: readonly Place[];
  readonly blobs: readonly string[];
  /** The blobs behind the links stay, unless they are among `blobs`. */
  readonly onlyThese?: boolean;
  /** Blobs that stay though nothing shows them any more. */
  readonly spared?: readonly string[];
  /** Absolute paths of other files. */
  readonly files?: readonly string[];
  readonly commits: readonly string[];
}

async function sweep(what: Sweep): Promise<{ readonly removed: RemovedModel; readonly blobs: readonly string[] }> {
  const { cacheDir, repo } = what;
  const root = repoFolder(cacheDir, repo);
  const blobs = new Set(what.blobs);
  const commits = new Set(what.commits.filter(isCommit));
  const gone: string[] = [];
  let deletedFiles = 0;
  let freedBytes = 0;

  async function remove(path: string, bytesOf = ({ size }: Stats) => size): Promise<boolean> {
    const found = await lstat(path).catch(ignoreAbsent);
    if (!found) return false;
    await rm(path);
    deletedFiles++;
    if (!found.isSymbolicLink() && found.nlink === 1) freedBytes += bytesOf(found);
    return true;
  }

  async function unlink({ commit, path, only }: Place): Promise<void> {
    const revision = join(root, "snapshots", commit);
    const link = join(revision, path);
    if (await isReached(revision, link)) {
      const blob = await blobOf(link, root);
      const isMeant = !only || blob === only.blob || (blob === null && (await isPlain(link, only.size)));
      if (isMeant && (await remove(link))) {
        if (blob !== null && !what.onlyThese) blobs.add(blob);
        if (isCommit(commit)) commits.add(commit);
      }
    }
    // At once: what a kill leaves here looks like a folder that another program has just made.
    if (commits.has(commit)) await removeEmptiedAbove(revision, link);
  }

  return orCacheError(repo, async () => {
    for (const place of what.places) if (isSafePath(place.path)) await unlink(place);
    const shown = blobs.size > 0 ? await shownBlobs(cacheDir, repo) : new Set<string>();
    for (const blob of blobs) {
      const path = blobPath(cacheDir, repo, blob);
      // A pull under way has found it here, and links it when its other files have come.
      if (shown === null || shown.has(blob) || isHeld(partialPath(cacheDir, repo, blob))) continue;
      if (!what.spared?.includes(blob) && (await remove(path))) gone.push(blob);
    }
    // Last: only the sidecar names the owner of a whole blob that was never linked.
    for (const path of what.files ?? []) await remove(path, onDisk);
    await removeEmptiedRepo(root, commits);
    return { removed: { deletedFiles, freedBytes }, blobs: gone };
  });
}

/** The folders of a file, as far as they are empty, up to its revision's. */
async function removeEmptiedAbove(revision: string, file: string): Promise<void> {
  for (let folder = dirname(file); folder.length >= revision.length; folder = dirname(folder))
    if (!(await removeIfEmpty(folder))) return;
}

/** The repository's own folders that are empty, and the refs that name one of these commits if its snapshot is gone. */
async function removeEmptiedRepo(root: string, commits: ReadonlySet<string>): Promise<void> {
  for (const commit of commits) {
    if ((await lstat(join(root, "snapshots", commit)).catch(ignoreAbsent)) === null)
      await removeRefsTo(join(root, "refs"), commit);
  }
  for (const folder of [join(root, "snapshots"), join(root, "blobs"), root]) await removeIfEmpty(folder);
}

/** The folder of refs and those in it too, if that empties them. */
async function removeRefsTo(folder: string, commit: string): Promise<void> {
  for (const entry of (await readdir(folder, { withFileTypes: true }).catch(ignoreAbsent)) ?? []) {
    const place = join(folder, entry.name);
    if (entry.isDirectory()) await removeRefsTo(place, commit);
    else if ((await readFile(place, "utf8").catch(ignoreDangling))?.trim() === commit) await rm(place, { force: true });
    else continue;
    await removeIfEmpty(folder);
  }
}

/** Whether the folders from the revision's down to the file are folders, and no links. */
async function isReached(commit: string, link: string): Promise<boolean> {
  for (let folder = dirname(link); folder.length >= commit.length; folder = dirname(folder))
    if ((await lstat(folder).catch(ignoreDangling))?.isDirectory() !== true) return false;
  return true;
}

/** The blob that a link leads to; null for a plain file, and for a link to elsewhere, which goes alone. */
async function blobOf(link: string, root: string): Promise<string | null> {
  const found = await lstat(link).catch(ignoreDangling);
  if (found?.isSymbolicLink() !== true) return null;
  // By real paths: a person may have moved the snapshots or the blobs to another disk.
  const target = resolve(await realpath(dirname(link)), await readlink(link));
  const [folder, blobs] = await Promise.all(
    [dirname(target), join(root, "blobs")].map((path) => realpath(path).catch(ignoreDangling)),
  );
  return folder !== null && folder === blobs && isDigest(basename(target)) ? basename(target) : null;
}

async function isPlain(path: string, size: number): Promise<boolean> {
  const found = await lstat(path).catch(ignoreDangling);
  return found?.isFile() === true && found.size === size;
}

/** What a file takes on the disk: one that is written at several places has holes. */
export function onDisk({ size, blocks }: Stats): number {
  return Number.isFinite(blocks) ? Math.min(size, blocks * 512) : size;
}
