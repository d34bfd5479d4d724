// What lies in a repository's folder of blobs of unfinished files, by blob: the partial, its sidecar and lock. Chooses nothing.
// Links under such a name are none of ours: they are not followed, and not removed.
import type { Stats } from "node:fs";
import { readdir, readlink, rm } from "node:fs/promises";
import { basename } from "node:path";
import { systemCode } from "../../core/errors.ts";
import { cacheError } from "../../hub/errors.ts";
import { entriesBelow } from "../../state/folder.ts";
import { blobPath, blobsFolder, digestOfPartial, partialPath, snapshotsFolder } from "../layout/layout.ts";
import { partialHolder } from "./partial-lock.ts";
import { fileAt, markOf, readSidecar, type Sidecar } from "./partial-sidecar.ts";

export interface PartialEntry {
  readonly digest: string;
  /** Absolute: the partial, its sidecar and lock, and what a kill left of writing these; the sidecar last. */
  readonly paths: readonly string[];
  /** Of the partial itself; null where there is none. */
  readonly data: Stats | null;
  /** Null where there is none, or one that is damaged. */
  readonly sidecar: Sidecar | null;
  /** Id of the gateway that downloads it; null where nothing says. */
  readonly gateway: string | null;
  /** Another process may be writing it. */
  readonly isLocked: boolean;
  /** When any of it was written last, ms. */
  readonly modifiedAt: number;
}

/** Those of a repository, of one blob where it is named. `gateway`: id of this one. Throws `cache_unwritable`. */
export async function partialEntries(
  cacheDir: string,
  repo: string,
  gateway: string,
  only?: string,
): Promise<PartialEntry[]> {
  const folder = blobsFolder(cacheDir, repo);
  const names = (await namesIn(folder)).filter((name) => digestOfPartial(name) !== null);
  const digests = new Set(names.flatMap((name) => digestOfPartial(name) ?? []));
  const entries: PartialEntry[] = [];
  for (const digest of only === undefined ? digests : [only]) {
    const own = names.filter((name) => digestOfPartial(name) === digest).map((name) => `${folder}/${name}`);
    const found: [string, Stats][] = [];
    for (const path of own) {
      const file = await fileAt(path);
      if (file) found.push([path, file]);
    }
    if (found.length === 0) continue;
    const partial = partialPath(cacheDir, repo, digest);
    try {
      const [sidecar, holder] = [await readSidecar(partial), await partialHolder(partial, gateway)];
      entries.push({
        digest,
        paths: found
          .map(([path]) => path)
          .sort((a, b) => Number(a.includes(".sidecar.")) - Number(b.includes(".sidecar."))),
        data: found.find(([path]) => path === partial)?.[1] ?? null,
        sidecar,
        gateway: holder?.gateway ?? sidecar?.gateway ?? null,
        isLocked: holder?.isLive ?? false,
        modifiedAt: Math.max(...found.map(([, { mtimeMs }]) => mtimeMs)),
      });
    } catch (error) {
      throw cacheError(error, basename(partial));
    }
  }
  return entries;
}

/** Whether the sidecar is all that is left of a download whose file became this blob, checked, and is it still. */
export function isOfBlob({ data, sidecar }: PartialEntry, blob: Stats | undefined): boolean {
  if (data !== null || !sidecar?.stored || !blob) return false;
  const { inode, modifiedAt } = markOf(blob);
  return sidecar.stored.inode === inode && sidecar.stored.modifiedAt === modifiedAt;
}

/** Whether this gateway stored the blob that lies there, and has checked it, as far as sidecars say. */
export async function hasStored(cacheDir: string, repo: string, digest: string, gateway: string): Promise<boolean> {
  const blob = await fileAt(blobPath(cacheDir, repo, digest));
  const [entry] = await partialEntries(cacheDir, repo, gateway, digest);
  return entry !== undefined && entry.gateway === gateway && isOfBlob(entry, blob);
}

/**
 * Removes an entry, and the blob too where only the entry's sidecar names its owner: one that no snapshot shows. Answers
 * with the paths. Throws `cache_unwritable`.
 */
export async function removeEntry(cacheDir: string, repo: string, entry: PartialEntry): Promise<readonly string[]> {
  const blob = blobPath(cacheDir, repo, entry.digest);
  const isLost = isOfBlob(entry, await fileAt(blob)) && !(await isShown(cacheDir, repo, entry.digest));
  const gone = [...(isLost ? [blob] : []), ...entry.paths];
  for (const path of gone) await remove(path);
  return gone;
}

/** Whether a snapshot shows the blob, by a link of either kind. Throws `cache_unwritable` where that cannot be told. */
export async function isShown(cacheDir: string, repo: string, digest: string): Promise<boolean> {
  const blob = await fileAt(blobPath(cacheDir, repo, digest));
  if (!blob || blob.nlink > 1) return blob !== undefined;
  const entries = await entriesBelow(snapshotsFolder(cacheDir, repo)).catch((error: unknown) => {
    if (systemCode(error) === "ENOENT") return [];
    throw cacheError(error, "a look at it");
  });
  for (const entry of entries) {
    if (!entry.isSymbolicLink()) continue;
    const target = await readlink(`${entry.parentPath}/${entry.name}`).catch(() => "");
    if (basename(target) === digest) return true;
  }
  return false;
}

/** Throws `cache_unwritable`. */
export async function remove(path: string): Promise<void> {
  await rm(path, { force: true }).catch((error: unknown) => {
    throw cacheError(error, basename(path));
  });
}

/** A folder's names; none where there is no such folder. Throws `cache_unwritable`. */
export async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw cacheError(error, "a look at it");
  }
}
