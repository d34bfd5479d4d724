// Unfinished files in the cache: which nobody wants any more, and their removal.
// Only our own: other tools share the cache, and their partials and locks may belong to a download that is under way.
import { cacheError } from "../../hub/errors.ts";
import { isAlive } from "../../state/lock.ts";
import {
  blobPath,
  blobsFolder,
  partialPath,
  partialSuffix,
  repoFolder,
  repoOfFolder,
  snapshotsFolder,
} from "../layout/layout.ts";
import { removeIfEmpty } from "./emptied.ts";
import { isHeld } from "./in-use.ts";
import {
  isOfBlob,
  isShown,
  namesIn,
  type PartialEntry,
  partialEntries,
  remove,
  removeEntry,
} from "./partial-entries.ts";
import { fileAt } from "./partial-sidecar.ts";

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** Another gateway that was stopped in a download resumes it when it is started again. */
const anothersMs = 7 * dayMs;

/**
 * Removes leftover partials, and whole files that a pull of several never came to link, unless they are for a model of
 * those that `wanted` names then (`owner/name:tag`, in any case) or being written. Another gateway's only after days. `gateway`: the id of this
 * one. Answers with their paths inside `cacheDir`, sorted. Throws `cache_unwritable`.
 */
export async function cleanPartials(
  cacheDir: string,
  wanted: () => Iterable<string>,
  gateway: string,
): Promise<readonly string[]> {
  const removed: string[] = [];
  for (const folder of await namesIn(cacheDir)) {
    const repo = repoOfFolder(folder);
    if (repo === null) continue;
    const gone: string[] = [];
    for (const name of await namesIn(`${cacheDir}/${folder}`)) {
      const path = `${cacheDir}/${folder}/${name}`;
      if (!name.endsWith(partialSuffix) || !(await isLeftTemporary(path, name))) continue;
      await remove(path);
      gone.push(path);
    }
    for (const entry of await partialEntries(cacheDir, repo, gateway)) {
      const model = entry.sidecar?.model.toLowerCase();
      const isWanted = [...wanted()].some((id) => id.toLowerCase() === model);
      if (await isLeft(cacheDir, repo, entry, isWanted, gateway))
        gone.push(...(await removeEntry(cacheDir, repo, entry)));
    }
    if (gone.length > 0) await removeEmptied(cacheDir, repo);
    removed.push(...gone.map((path) => path.slice(cacheDir.length + 1)));
  }
  return removed.sort();
}

async function isLeft(
  cacheDir: string,
  repo: string,
  entry: PartialEntry,
  isWanted: boolean,
  gateway: string,
): Promise<boolean> {
  if (entry.isLocked || isHeld(partialPath(cacheDir, repo, entry.digest))) return false;
  if (entry.gateway !== gateway) return !isWanted && Date.now() - entry.modifiedAt >= anothersMs;
  if (!isWanted) return true;
  // A kill came between the linking and the removal of the sidecar.
  const blob = await fileAt(blobPath(cacheDir, repo, entry.digest));
  return isOfBlob(entry, blob) && isShown(cacheDir, repo, entry.digest);
}

/** Whether a link, ref or copy that was on its way was left there. */
async function isLeftTemporary(path: string, name: string): Promise<boolean> {
  if (isHeld(path)) return false;
  const pid = Number(/^\.(\d+)-/.exec(name)?.[1] ?? 0);
  // An earlier process may have had our own id, as in a container.
  if (pid !== 0 && (pid === process.pid || !(await isAlive({ pid, started: "" })))) return true;
  return Date.now() - ((await fileAt(path))?.mtimeMs ?? Number.NaN) >= dayMs;
}

/**
 * After a model was linked: its files need no sidecar any more, and what a pull of an older commit left for it serves
 * nobody. What another gateway writes stays, be it for a model of the same name.
 */
export async function settleModel(options: {
  readonly cacheDir: string;
  readonly repo: string;
  readonly model: string;
  readonly blobs: readonly string[];
  readonly gateway: string;
}): Promise<void> {
  const { cacheDir, repo, model, blobs, gateway } = options;
  for (const entry of await partialEntries(cacheDir, repo, gateway)) {
    const { digest, sidecar, isLocked, modifiedAt } = entry;
    const isOurs = entry.gateway === gateway;
    if (isLocked) continue;
    if (blobs.includes(digest)) {
      // Where links are copies nothing leads to the blob, and it stays nevertheless.
      if (isOurs || Date.now() - modifiedAt >= hourMs) for (const path of entry.paths) await remove(path);
    } else if (isOurs && sidecar?.model.toLowerCase() === model.toLowerCase()) {
      if (!isHeld(partialPath(cacheDir, repo, digest))) await removeEntry(cacheDir, repo, entry);
    }
  }
}

/** What an unfinished first pull has made; whatever else there is stays. */
async function removeEmptied(cacheDir: string, repo: string): Promise<void> {
  try {
    for (const folder of [blobsFolder(cacheDir, repo), snapshotsFolder(cacheDir, repo), repoFolder(cacheDir, repo)])
      await removeIfEmpty(folder);
  } catch (error) {
    throw cacheError(error, repo);
  }
}
