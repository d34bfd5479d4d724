// Unfinished files in the cache, by blob: the partial, its sidecar and lock. Which of them serve nothing, and their removal.
// Only our own: other tools share the cache, and their partials and locks may belong to a download under way. Links under such a
// name are none of ours: they are not followed, and not removed.
import { readdir, rm } from "node:fs/promises";
import { ignoreAbsent } from "../../core/errors.ts";
import { orCacheError } from "../../hub/errors.ts";
import { removeIfEmpty } from "../../state/folder.ts";
import { isAlive } from "../../state/lock.ts";
import {
  blobsFolder,
  digestOfPartial,
  partialPath,
  partialSuffix,
  repoFolder,
  repoOfFolder,
  snapshotsFolder,
} from "../layout/layout.ts";
import { isHeld, partialHolder } from "./in-use.ts";
import { fileAt, readSidecar, type Sidecar } from "./partial-file.ts";

export interface PartialEntry {
  readonly digest: string;
  /** Absolute: the partial, its sidecar and lock, and what a kill left of writing these; the sidecar after the partial. */
  readonly paths: readonly string[];
  /** The partial itself is there. */
  readonly hasBytes: boolean;
  /** Null if there is none, or a damaged one. */
  readonly sidecar: Sidecar | null;
  /** Id of the gateway that downloads it; null if it is not known. */
  readonly gateway: string | null;
  /** Another process may be writing it. */
  readonly isLocked: boolean;
  /** When any of it was written last, ms. */
  readonly modifiedAt: number;
}

const dayMs = 24 * 3_600_000;
/** Another gateway that was stopped in a download resumes it when it is started again. */
const anothersMs = 7 * dayMs;

/** Those of a repository. `gateway`: id of this one. Throws `cache_unwritable`. */
export function partialEntries(cacheDir: string, repo: string, gateway: string): Promise<PartialEntry[]> {
  return orCacheError("its partials", async () => {
    const folder = blobsFolder(cacheDir, repo);
    // In this order the sidecar, which names the owner, is removed after the partial.
    const names = (await namesIn(folder)).sort();
    const entries: PartialEntry[] = [];
    for (const digest of new Set(names.flatMap((name) => digestOfPartial(name) ?? []))) {
      const partial = partialPath(cacheDir, repo, digest);
      const places = names.filter((name) => digestOfPartial(name) === digest).map((name) => `${folder}/${name}`);
      const files = await Promise.all(places.map(async (path) => ({ path, file: await fileAt(path) })));
      const own = files.flatMap(({ path, file }) => (file ? { path, modifiedAt: file.mtimeMs } : []));
      if (own.length === 0) continue;
      const [sidecar, holder] = [await readSidecar(partial), await partialHolder(partial, gateway)];
      entries.push({
        digest,
        paths: own.map(({ path }) => path),
        hasBytes: own.some(({ path }) => path === partial),
        sidecar,
        gateway: holder?.gateway ?? sidecar?.gateway ?? null,
        isLocked: holder?.isLive ?? false,
        modifiedAt: Math.max(...own.map(({ modifiedAt }) => modifiedAt)),
      });
    }
    return entries;
  });
}

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
      const isInUse = entry.isLocked || isHeld(partialPath(cacheDir, repo, entry.digest));
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

/** A folder's names; none if there is no such folder. */
async function namesIn(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(ignoreAbsent)) ?? [];
}
