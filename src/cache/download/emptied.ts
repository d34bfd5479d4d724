// What deleting leaves empty in a repository's folder: folders and refs; and the blobs that a snapshot still shows. Another
// program may have made an empty folder a moment ago, to put a file in: only what was emptied here goes.
import { lstat, readdir, readFile, readlink, rm, rmdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { ignoreAbsent, ignoreDangling, systemCode } from "../../core/errors.ts";
import { entriesBelow } from "../../state/folder.ts";

/** A path in a snapshot. */
export interface InSnapshot {
  /** The commit's folder. */
  readonly commit: string;
  /** Path inside it, with the system's separators. */
  readonly inside: string;
}

/** The folders that a file stood in, as far as they are empty, up to its commit's. */
export async function removeEmptiedAbove({ commit, inside }: InSnapshot): Promise<void> {
  let folder = join(commit, inside);
  while (folder !== commit) {
    folder = dirname(folder);
    if (!(await removeIfEmpty(folder))) return;
  }
}

/** What of a repository's own folders is empty, and the refs that name one of these commits, where its snapshot is gone. */
export async function removeEmptiedRepo(root: string, commits: ReadonlySet<string>): Promise<void> {
  for (const commit of commits) {
    if ((await lstat(join(root, "snapshots", commit)).catch(ignoreAbsent)) === null)
      await removeRefsTo(join(root, "refs"), commit);
  }
  for (const folder of [join(root, "snapshots"), join(root, "blobs"), root]) await removeIfEmpty(folder);
}

/** The folder of refs and those in it too, where that empties them. */
async function removeRefsTo(folder: string, commit: string): Promise<void> {
  for (const entry of (await readdir(folder, { withFileTypes: true }).catch(ignoreAbsent)) ?? []) {
    const place = join(folder, entry.name);
    if (entry.isDirectory()) await removeRefsTo(place, commit);
    else if ((await readFile(place, "utf8").catch(ignoreDangling))?.trim() === commit) await rm(place, { force: true });
    else continue;
    await removeIfEmpty(folder);
  }
}

/** True where nothing is left in it, also where it was gone before: a removal that was cut short is finished. */
export async function removeIfEmpty(folder: string): Promise<boolean> {
  try {
    // rmdir refuses a link to a folder; it stays, and so does the folder.
    if ((await lstat(folder)).isSymbolicLink()) return (await readdir(folder)).length === 0;
    await rmdir(folder);
    return true;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return true;
    if (["ENOTEMPTY", "EEXIST"].includes(systemCode(error) ?? "")) return false;
    throw error;
  }
}

/** Names of the blobs that links in the snapshots lead to; null where a link to a folder may show any of them. */
export async function blobsShownIn(snapshots: string): Promise<Set<string> | null> {
  const shown = new Set<string>();
  for (const entry of (await entriesBelow(snapshots).catch(ignoreDangling)) ?? []) {
    if (!entry.isSymbolicLink()) continue;
    const place = join(entry.parentPath, entry.name);
    if ((await stat(place).catch(ignoreDangling))?.isDirectory()) return null;
    shown.add(basename((await readlink(place).catch(ignoreDangling)) ?? ""));
  }
  return shown;
}
