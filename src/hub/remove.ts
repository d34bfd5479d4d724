// Deletes a model's files from the cache: links first, then the blobs that nothing links any more.
// A crash in between leaves unlinked blobs, which the next try finds by the names it is given.
import { readdir, readlink, rm, rmdir, stat } from "node:fs/promises";
import { basename, dirname, join, relative, resolve, sep } from "node:path";
import { systemCode } from "../core/errors.ts";
import { cacheError } from "./errors.ts";
import { blobPath, isDigest, repoFolder } from "./layout.ts";

export interface RemovedModel {
  readonly deletedFiles: number;
  readonly freedBytes: number;
}

export async function removeModel(options: {
  readonly cacheDir: string;
  /** `owner/name` */
  readonly repo: string;
  /** Absolute paths in snapshots. */
  readonly links: readonly string[];
  /** Further blobs that belonged to the model. */
  readonly blobs: readonly string[];
}): Promise<RemovedModel> {
  const root = repoFolder(options.cacheDir, options.repo);
  let deletedFiles = 0;
  let freedBytes = 0;
  const blobs = new Set(options.blobs);
  try {
    for (const path of await inEverySnapshot(join(root, "snapshots"), options.links)) {
      const target = await targetOf(path, join(root, "blobs"));
      if (target === "absent") continue;
      if (target === "plain") freedBytes += (await stat(path)).size;
      else if (target !== "foreign") blobs.add(target.blob);
      await rm(path);
      deletedFiles++;
    }
    await removeEmptyFolders(join(root, "snapshots"));
    const linked = await linkedBlobs(join(root, "snapshots"));
    for (const blob of blobs) {
      if (linked.has(blob)) continue;
      const path = blobPath(options.cacheDir, options.repo, blob);
      const size = (await stat(path).catch(() => undefined))?.size;
      if (size === undefined) continue;
      await rm(path);
      deletedFiles++;
      freedBytes += size;
    }
    await removeEmptyRepo(root);
  } catch (error) {
    throw cacheError(error, options.repo);
  }
  return { deletedFiles, freedBytes };
}

/** The same files in the repository's other revisions: deleting one revision alone would bring an older one back. */
async function inEverySnapshot(snapshots: string, links: readonly string[]): Promise<string[]> {
  const commits = (await readdir(snapshots).catch(ignoreAbsent)) ?? [];
  const paths = links.map((path) => relative(snapshots, path).split(sep).slice(1).join(sep));
  return paths.flatMap((path) => commits.map((commit) => join(snapshots, commit, path)));
}

/** A link that somebody made to a file outside the cache is ours to remove, and the file is not. */
async function targetOf(
  path: string,
  blobs: string,
): Promise<"absent" | "plain" | "foreign" | { readonly blob: string }> {
  try {
    const target = resolve(dirname(path), await readlink(path));
    const blob = basename(target);
    return dirname(target) === resolve(blobs) && isDigest(blob) ? { blob } : "foreign";
  } catch (error) {
    // A file among the commits, as file browsers leave them, is no folder to look into.
    if (["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "")) return "absent";
    if (systemCode(error) === "EINVAL") return "plain";
    throw error;
  }
}

async function linkedBlobs(snapshots: string): Promise<Set<string>> {
  const linked = new Set<string>();
  const entries = await readdir(snapshots, { recursive: true, withFileTypes: true }).catch(ignoreAbsent);
  for (const entry of entries ?? []) {
    if (entry.isSymbolicLink()) linked.add(basename(await readlink(join(entry.parentPath, entry.name))));
  }
  return linked;
}

/** All of them, not just those emptied now: a crash may have left one. */
async function removeEmptyFolders(folder: string): Promise<void> {
  for (const entry of (await readdir(folder, { withFileTypes: true }).catch(ignoreAbsent)) ?? []) {
    if (!entry.isDirectory()) continue;
    await removeEmptyFolders(join(folder, entry.name));
    await removeIfEmpty(join(folder, entry.name));
  }
}

/** True where it is gone, also where it was before: a removal that was cut short is finished. */
async function removeIfEmpty(folder: string): Promise<boolean> {
  try {
    await rmdir(folder);
    return true;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return true;
    if (["ENOTEMPTY", "EEXIST"].includes(systemCode(error) ?? "")) return false;
    throw error;
  }
}

/** A repository with no snapshot left keeps nothing: its refs would name a commit that is not there. */
async function removeEmptyRepo(root: string): Promise<void> {
  if (!(await removeIfEmpty(join(root, "snapshots")))) return;
  await rm(join(root, "refs"), { recursive: true, force: true });
  await removeIfEmpty(join(root, "blobs"));
  await removeIfEmpty(root);
}

function ignoreAbsent(error: unknown): null {
  if (systemCode(error) === "ENOENT") return null;
  throw error;
}
