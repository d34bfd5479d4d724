// Deletes files from a repository's folder of the cache: links first, then the blobs that no link shows any more, then empty
// folders. Links to folders are not followed: a revision behind one stays, and so do blobs that it may show.
// A crash in between leaves unlinked blobs and empty folders, which the next try finds by the names it is given.
import type { Stats } from "node:fs";
import { lstat, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { ignoreAbsent, ignoreDangling } from "../../core/errors.ts";
import { isCommit } from "../../core/ids.ts";
import { orCacheError } from "../../hub/errors.ts";
import { removeEmptyTree, removeIfEmpty } from "../../state/folder.ts";
import { isHeld } from "../download/in-use.ts";
import { shownBlobs } from "../download/link.ts";
import { onDisk } from "../download/partials.ts";
import { blobPath, partialPath, repoFolder } from "../layout/layout.ts";
import type { RepoPlace } from "../report/repo-files.ts";

export interface RemovedFiles {
  readonly deletedFiles: number;
  readonly freedBytes: number;
}

/** Errors: `cache_unwritable`. */
export async function removeFiles(options: {
  readonly cacheDir: string;
  /** `owner/name` */
  readonly repo: string;
  /** As a survey has them. */
  readonly links: readonly RepoPlace[];
  /** Names of blobs; one that something else shows by then stays. */
  readonly blobs: readonly string[];
  /** Other files, relative to the repository's folder, as a survey has them. */
  readonly partials?: readonly string[];
  /** Revisions that an earlier try may have emptied. */
  readonly commits?: readonly string[];
}): Promise<RemovedFiles> {
  const { cacheDir, repo, links, blobs, partials = [], commits = [] } = options;
  const root = repoFolder(cacheDir, repo);
  const emptied = new Set([...links.map(({ commit }) => commit), ...commits].filter(isCommit));
  let deletedFiles = 0;
  let freedBytes = 0;

  async function remove(path: string, bytesOf = ({ size }: Stats) => size): Promise<void> {
    const found = await lstat(path).catch(ignoreAbsent);
    if (!found) return;
    await rm(path);
    deletedFiles++;
    if (!found.isSymbolicLink() && found.nlink === 1) freedBytes += bytesOf(found);
  }

  await orCacheError(repo, async () => {
    for (const { commit, path } of links) await remove(join(root, "snapshots", commit, path));
    for (const commit of emptied) await removeEmptyTree(join(root, "snapshots", commit));
    const shown = blobs.length > 0 ? await shownBlobs(cacheDir, repo) : null;
    for (const blob of new Set(blobs)) {
      const path = blobPath(cacheDir, repo, blob);
      // A pull under way has found it here, and links it when its other files have come.
      if (shown === null || shown.has(blob) || isHeld(partialPath(cacheDir, repo, blob))) continue;
      await remove(path);
    }
    // Last: only the sidecar names the owner of a whole blob that was never linked.
    for (const path of partials) await remove(join(root, path), onDisk);
    for (const commit of emptied) await removeRefsTo(root, commit);
    for (const folder of [join(root, "snapshots"), join(root, "blobs"), root]) await removeIfEmpty(folder);
  });
  return { deletedFiles, freedBytes };
}

/** The refs that name a commit whose snapshot is gone, and their folders if that empties them. */
async function removeRefsTo(root: string, commit: string, folder = join(root, "refs")): Promise<void> {
  if ((await lstat(join(root, "snapshots", commit)).catch(ignoreAbsent)) !== null) return;
  for (const entry of (await readdir(folder, { withFileTypes: true }).catch(ignoreAbsent)) ?? []) {
    const place = join(folder, entry.name);
    if (entry.isDirectory()) await removeRefsTo(root, commit, place);
    else if ((await readFile(place, "utf8").catch(ignoreDangling))?.trim() === commit) await rm(place, { force: true });
    else continue;
    await removeIfEmpty(folder);
  }
}
