// Unfinished files in the cache, by blob: the partial, its sidecar and lock, and a whole file that no snapshot links yet. Which
// of them serve nothing, and their removal. Only our own: other tools share the cache, and their partials and locks may
// belong to a download under way. Links under such a name are none of ours: they are not followed, and not removed.
import type { Stats } from "node:fs";
import { readdir, rm } from "node:fs/promises";
import { basename } from "node:path";
import { ignoreAbsent } from "../../core/errors.ts";
import { orCacheError } from "../../hub/errors.ts";
import { removeIfEmpty } from "../../state/folder.ts";
import { isAlive } from "../../state/lock.ts";
import {
  blobPath,
  blobsFolder,
  digestOfPartial,
  partialPath,
  partialSuffix,
  repoFolder,
  repoOfFolder,
  snapshotsFolder,
} from "../layout/layout.ts";
import { fileAt, partialHolder, readSidecar, type Sidecar } from "./beside-partial.ts";
import { isHeld, isHeldTwice } from "./in-use.ts";
import { shownBlobs } from "./link.ts";

export interface PartialEntry {
  readonly digest: string;
  /** Absolute: the partial, its sidecar and lock, and what a kill left of writing these; the sidecar last. */
  readonly paths: readonly string[];
  /** Of the partial itself; null if there is none. */
  readonly data: Stats | null;
  /** Null if there is none, or a damaged one. */
  readonly sidecar: Sidecar | null;
  /** Id of the gateway that downloads it; null if it is not known. */
  readonly gateway: string | null;
  /** Another process may be writing it. */
  readonly isLocked: boolean;
  /** When any of it was written last, ms. */
  readonly modifiedAt: number;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;
/** Another gateway that was stopped in a download resumes it when it is started again. */
const anothersMs = 7 * dayMs;

/** Those of a repository. `gateway`: id of this one. Throws `cache_unwritable`. */
export async function partialEntries(cacheDir: string, repo: string, gateway: string): Promise<PartialEntry[]> {
  const folder = blobsFolder(cacheDir, repo);
  const names = (await namesIn(folder)).toSorted((a, b) => Number(isSidecar(a)) - Number(isSidecar(b)));
  const digests = new Set(names.flatMap((name) => digestOfPartial(name) ?? []));
  const entries: PartialEntry[] = [];
  for (const digest of digests) {
    const partial = partialPath(cacheDir, repo, digest);
    const files = new Map<string, Stats>();
    for (const name of names.filter((each) => digestOfPartial(each) === digest)) {
      const file = await fileAt(`${folder}/${name}`);
      if (file) files.set(`${folder}/${name}`, file);
    }
    if (files.size === 0) continue;
    const sidecar = await orCacheError(basename(partial), () => readSidecar(partial));
    const holder = await orCacheError(basename(partial), () => partialHolder(partial, gateway));
    entries.push({
      digest,
      paths: [...files.keys()],
      data: files.get(partial) ?? null,
      sidecar,
      gateway: holder?.gateway ?? sidecar?.gateway ?? null,
      isLocked: holder?.isLive ?? false,
      modifiedAt: Math.max(...[...files.values()].map(({ mtimeMs }) => mtimeMs)),
    });
  }
  return entries;
}

function isSidecar(name: string): boolean {
  return name.includes(".sidecar.");
}

/** Whether this gateway stored the blob that is there, and has checked it, as far as the sidecar has it. */
export async function hasStored(cacheDir: string, repo: string, digest: string, gateway: string): Promise<boolean> {
  const partial = partialPath(cacheDir, repo, digest);
  const [data, sidecar] = [await fileAt(partial), await readSidecar(partial)];
  return sidecar?.gateway === gateway && isStored({ data: data ?? null, sidecar });
}

/** The sidecar is all that is left of a download: its file became the blob. */
function isStored({ data, sidecar }: Pick<PartialEntry, "data" | "sidecar">): boolean {
  return data === null && sidecar?.stored === true;
}

/**
 * Removes leftover partials, and whole files that a pull of several never came to link, unless they are for a model of
 * those that `wanted` names then (`owner/name:tag`, in any case) or being written. Another gateway's only after days. `gateway`:
 * the id of this one. Answers with their paths inside `cacheDir`, sorted. Throws `cache_unwritable`.
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
    if (gone.length > 0) await removeEmptyFolders(cacheDir, repo);
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
  // A kill came between the linking and the removal of the sidecar.
  return !isWanted || (isStored(entry) && (await isShown(cacheDir, repo, entry.digest)));
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
 * nothing. Another gateway's files stay, also those for a model of the same name.
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
      // If links are copies nothing leads to the blob, and it stays nevertheless.
      if (isOurs || Date.now() - modifiedAt >= hourMs) for (const path of entry.paths) await remove(path);
    } else if (isOurs && sidecar?.model.toLowerCase() === model.toLowerCase()) {
      if (!isHeld(partialPath(cacheDir, repo, digest))) await removeEntry(cacheDir, repo, entry);
    }
  }
}

/**
 * Removes blobs of a pull that ended early: unlinked they would stay unseen. Not those that a snapshot shows by now, or that
 * another pull of this process counts on. Throws `cache_unwritable`.
 */
export async function discardBlobs(
  cacheDir: string,
  repo: string,
  digests: readonly string[],
  gateway: string,
): Promise<void> {
  for (const entry of await partialEntries(cacheDir, repo, gateway)) {
    if (!digests.includes(entry.digest) || isHeldTwice(partialPath(cacheDir, repo, entry.digest))) continue;
    if (!entry.isLocked && entry.gateway === gateway) await removeEntry(cacheDir, repo, entry);
  }
}

/** An unfinished first pull leaves no folders; if something stays, all of them do. Never hides why the pull failed. */
export async function removeEmptyFolders(cacheDir: string, repo: string): Promise<void> {
  for (const folder of [blobsFolder(cacheDir, repo), snapshotsFolder(cacheDir, repo), repoFolder(cacheDir, repo)])
    if (!(await removeIfEmpty(folder).catch(() => false))) return;
}

/** Removes an entry, and its blob if no snapshot shows it: only the sidecar names its owner. Answers with the paths. */
async function removeEntry(cacheDir: string, repo: string, entry: PartialEntry): Promise<readonly string[]> {
  const blob = blobPath(cacheDir, repo, entry.digest);
  const isLost = isStored(entry) && (await fileAt(blob)) && !(await isShown(cacheDir, repo, entry.digest));
  const gone = [...(isLost ? [blob] : []), ...entry.paths];
  for (const path of gone) await remove(path);
  return gone;
}

/** Whether a snapshot shows the blob, by a link of either kind. Throws `cache_unwritable` if that is not known. */
async function isShown(cacheDir: string, repo: string, digest: string): Promise<boolean> {
  if (((await fileAt(blobPath(cacheDir, repo, digest)))?.nlink ?? 1) > 1) return true;
  const shown = await orCacheError("its snapshots", () => shownBlobs(cacheDir, repo));
  return shown === null || shown.has(digest);
}

/** A folder's names; none if there is no such folder. */
async function namesIn(folder: string): Promise<string[]> {
  return (await orCacheError("its folder", () => readdir(folder).catch(ignoreAbsent))) ?? [];
}

function remove(path: string): Promise<void> {
  return orCacheError(basename(path), () => rm(path, { force: true }));
}
