// What deleting leaves empty in a repository's folder: folders and refs, and the blobs that a snapshot still shows. Another
// program may have made an empty folder a moment ago, to put a file in: only what was emptied here goes.
import { lstat, readdir, readFile, readlink, realpath, rm, rmdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { systemCode } from "../../core/errors.ts";

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
    if ((await lstat(join(root, "snapshots", commit)).catch(ignoreNotThere)) === null)
      await removeRefsTo(join(root, "refs"), commit);
  }
  for (const folder of [join(root, "snapshots"), join(root, "blobs"), root]) await removeIfEmpty(folder);
}

/** The folder of refs and those in it too, where that empties them. */
async function removeRefsTo(folder: string, commit: string): Promise<void> {
  for (const entry of (await readdir(folder, { withFileTypes: true }).catch(ignoreNotThere)) ?? []) {
    const place = join(folder, entry.name);
    if (entry.isDirectory()) await removeRefsTo(place, commit);
    else if ((await readFile(place, "utf8").catch(ignoreNotThere))?.trim() === commit) await rm(place, { force: true });
    else continue;
    await removeIfEmpty(folder);
  }
}

/** A folder that holds nothing but folders. */
export async function removeEmptyTree(folder: string): Promise<void> {
  for (const entry of (await readdir(folder, { withFileTypes: true }).catch(ignoreNotThere)) ?? [])
    if (entry.isDirectory()) await removeEmptyTree(join(folder, entry.name));
  await removeIfEmpty(folder);
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

/** A link to a folder may lead anywhere: files of a repository lie no deeper. */
const deepestFolder = 8;

/** Names of the blobs that links below a folder lead to. Links to folders are followed: those behind them are in use too. */
export async function blobsShownIn(folder: string): Promise<Set<string>> {
  const shown = new Set<string>();
  const seen = new Set<string>();
  async function walk(path: string, depth: number): Promise<void> {
    const real = await realpath(path).catch(ignoreNotThere);
    if (real === null || seen.has(real) || depth > deepestFolder) return;
    seen.add(real);
    for (const entry of (await readdir(real, { withFileTypes: true }).catch(ignoreNotThere)) ?? []) {
      const place = join(real, entry.name);
      if (entry.isDirectory()) await walk(place, depth + 1);
      if (!entry.isSymbolicLink()) continue;
      shown.add(basename((await readlink(place).catch(ignoreNotThere)) ?? ""));
      if ((await stat(place).catch(ignoreNotThere))?.isDirectory()) await walk(place, depth + 1);
    }
  }
  await walk(folder, 0);
  return shown;
}

/** A file among the commits, as file browsers leave them, is no folder to look into. */
export function ignoreNotThere(error: unknown): null {
  if (["ENOENT", "ENOTDIR", "ELOOP"].includes(systemCode(error) ?? "")) return null;
  throw error;
}
