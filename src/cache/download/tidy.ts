// What a pull or import that ended early leaves of the files that it had made whole, and of the folders that it had made.

import { blobsFolder, partialPath, repoFolder, snapshotsFolder } from "../layout/layout.ts";
import { removeIfEmpty } from "./emptied.ts";
import { isHeldTwice } from "./in-use.ts";
import { partialEntries, removeEntry } from "./partial-entries.ts";

/**
 * Removes blobs that were made whole in vain: unlinked they would lie there unseen. Not those that a snapshot shows by now, or
 * that another pull of this process counts on. Throws `cache_unwritable`.
 */
export async function discardBlobs(
  cacheDir: string,
  repo: string,
  digests: readonly string[],
  gateway: string,
): Promise<void> {
  for (const digest of digests) {
    if (isHeldTwice(partialPath(cacheDir, repo, digest))) continue;
    for (const entry of await partialEntries(cacheDir, repo, gateway, digest))
      if (!entry.isLocked && entry.gateway === gateway) await removeEntry(cacheDir, repo, entry);
  }
}

/** An unfinished first pull leaves no folders; where something stays, all of them do. */
export async function removeEmptyFolders(cacheDir: string, repo: string): Promise<void> {
  if (await isEmptied(blobsFolder(cacheDir, repo)))
    for (const folder of [snapshotsFolder(cacheDir, repo), repoFolder(cacheDir, repo)]) await isEmptied(folder);
}

/** A folder that cannot be removed is no reason to hide why the pull failed. */
function isEmptied(folder: string): Promise<boolean> {
  return removeIfEmpty(folder).catch(() => false);
}
