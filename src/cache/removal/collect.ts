// Deletes what was found to serve nobody, in one repository's folder: links first, then the blobs that nothing links then.
// Chooses nothing; what is linked again since it was chosen stays.
import type { Stats } from "node:fs";
import { lstat, rm } from "node:fs/promises";
import { join } from "node:path";
import { systemCode } from "../../core/errors.ts";
import { isCommit } from "../../core/ids.ts";
import { cacheError } from "../../hub/errors.ts";
import { removeEmptyTree, removeIfEmpty } from "../download/emptied.ts";
import { isHeld } from "../download/in-use.ts";
import { blobPath, isSafePath, partialPath, repoFolder } from "../layout/layout.ts";
import type { RemovedModel } from "./remove.ts";

export interface Collection {
  readonly cacheDir: string;
  /** `owner/name` */
  readonly repo: string;
  /** Relative to the repository's folder, as are all paths here. */
  readonly links: readonly string[];
  /** Names of blobs. */
  readonly blobs: readonly string[];
  readonly partials: readonly string[];
  readonly folders: readonly string[];
  /** Names of the blobs that a snapshot shows, as it is when asked. */
  linkedNow(): Promise<ReadonlySet<string>>;
}

/** Also answers with the blobs that went. Errors: `cache_unwritable`; what was chosen can be chosen again then. */
export async function collectRepo(
  collection: Collection,
): Promise<RemovedModel & { readonly blobs: readonly string[] }> {
  const { cacheDir, repo } = collection;
  const root = repoFolder(cacheDir, repo);
  const gone: string[] = [];
  let deletedFiles = 0;
  let freedBytes = 0;

  async function remove(path: string): Promise<boolean> {
    const found = await lstat(path).catch(ignoreAbsent);
    if (!found) return false;
    await rm(path);
    deletedFiles++;
    if (!found.isSymbolicLink() && found.nlink === 1) freedBytes += bytesOf(found);
    return true;
  }

  try {
    for (const path of collection.links.filter(isSafePath)) await remove(join(root, path));
    for (const commit of new Set(collection.links.map((path) => path.split("/")[1] ?? "")))
      if (isCommit(commit)) await removeEmptyTree(join(root, "snapshots", commit));
    const linked = collection.blobs.length > 0 ? await collection.linkedNow() : new Set();
    for (const blob of collection.blobs) {
      if (linked.has(blob) || isHeld(partialPath(cacheDir, repo, blob))) continue;
      if (await remove(blobPath(cacheDir, repo, blob))) gone.push(blob);
    }
    // Last: without its journal nobody could tell whose a whole blob is that was never linked.
    for (const path of collection.partials.filter(isSafePath)) await remove(join(root, path));
    for (const path of collection.folders) await removeEmptyTree(join(root, path));
    for (const folder of [join(root, "blobs"), join(root, "snapshots"), root]) await removeIfEmpty(folder);
  } catch (error) {
    throw cacheError(error, repo);
  }
  return { deletedFiles, freedBytes, blobs: gone };
}

/** What a file takes on the disk: one that is written at several places has holes. */
function bytesOf({ size, blocks }: Stats): number {
  return Number.isFinite(blocks) ? Math.min(size, blocks * 512) : size;
}

function ignoreAbsent(error: unknown): null {
  if (["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "")) return null;
  throw error;
}
