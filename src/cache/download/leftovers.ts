// Removes unfinished files of the cache that serve nothing.
// Only our own: other tools share the cache, and their partials and locks may belong to a download under way.
import { rm } from "node:fs/promises";
import { orCacheError } from "../../hub/errors.ts";
import { namesIn, removeIfEmpty } from "../../state/folder.ts";
import { isAlive } from "../../state/lock.ts";
import { blobsFolder, partialSuffix, repoFolder, repoOfFolder, snapshotsFolder } from "../layout/layout.ts";
import { isHeld } from "./in-use.ts";
import { fileAt } from "./partial-file.ts";
import { type PartialEntry, partialEntries } from "./partials.ts";

const dayMs = 24 * 3_600_000;
/** Another gateway that was stopped in a download resumes it when it is started again. */
const anothersMs = 7 * dayMs;

/**
 * Removes leftover partials, unless they are for a model of those that `wanted` names then (`owner/name:tag`, in any case) or being
 * written. Another gateway's only after days. `gateway`: the id of this one. Answers with their paths inside `cacheDir`, sorted.
 * Throws `cache_unwritable`.
 */
export async function cleanPartials(
  cacheDir: string,
  wanted: () => Iterable<string>,
  gateway: string,
): Promise<readonly string[]> {
  const removed: string[] = [];
  for (const folder of await orCacheError("its folder", () => namesIn(cacheDir))) {
    const repo = repoOfFolder(folder);
    if (repo === null) continue;
    const isLeft = ({ sidecar, modifiedAt, ...entry }: PartialEntry): boolean => {
      const model = sidecar?.model.toLowerCase();
      const isWanted = [...wanted()].some((id) => id.toLowerCase() === model);
      // Of our own a sidecar alone is what a kill leaves beside a blob.
      if (entry.gateway === gateway) return !isWanted || !entry.hasBytes;
      return !isWanted && Date.now() - modifiedAt >= anothersMs;
    };
    removed.push(...(await cleanRepo(cacheDir, repo, gateway, isLeft)));
  }
  return removed.map((path) => path.slice(cacheDir.length + 1)).sort();
}

/** Removes what is left of a repository's partials, as far as nothing writes it. Answers with absolute paths. */
export async function cleanRepo(
  cacheDir: string,
  repo: string,
  gateway: string,
  isLeft: (entry: PartialEntry) => boolean,
): Promise<readonly string[]> {
  const root = repoFolder(cacheDir, repo);
  const gone: string[] = [];
  await orCacheError(repo, async () => {
    for (const name of await namesIn(root)) if (await isLeftTemporary(root, name)) gone.push(`${root}/${name}`);
    for (const entry of await partialEntries(cacheDir, repo, gateway)) {
      const isInUse = entry.isLocked || isHeld(entry.partial);
      if (!isInUse && isLeft(entry)) gone.push(...entry.paths);
    }
    for (const path of gone) await rm(path, { force: true });
  });
  if (gone.length > 0) await removeEmptyFolders(cacheDir, repo);
  return gone;
}

/** Whether a link, ref or copy that was on its way was left there. */
async function isLeftTemporary(folder: string, name: string): Promise<boolean> {
  const path = `${folder}/${name}`;
  if (!name.endsWith(partialSuffix) || isHeld(path)) return false;
  const pid = Number(/^\.(\d+)-/.exec(name)?.[1] ?? 0);
  // An earlier process may have had our own id, as in a container.
  if (pid !== 0 && (pid === process.pid || !(await isAlive({ pid, started: "" })))) return true;
  return Date.now() - ((await fileAt(path))?.mtimeMs ?? Number.NaN) >= dayMs;
}

/** An unfinished first pull leaves no folders; if something stays, all of them do. Never hides why the pull failed. */
export async function removeEmptyFolders(cacheDir: string, repo: string): Promise<void> {
  for (const folder of [blobsFolder(cacheDir, repo), snapshotsFolder(cacheDir, repo), repoFolder(cacheDir, repo)])
    if (!(await removeIfEmpty(folder).catch(() => false))) return;
}
