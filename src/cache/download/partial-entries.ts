// What lies in a repository's folder of unfinished files, each with the journal that says whose it is; and the removal of one.
// Chooses nothing. Links and pipes under such a name are none of ours: they are not followed, and not removed.
import type { Stats } from "node:fs";
import { lstat, readdir, readlink, rm } from "node:fs/promises";
import { basename } from "node:path";
import { systemCode } from "../../core/errors.ts";
import { cacheError } from "../../hub/errors.ts";
import { entriesBelow } from "../../state/folder.ts";
import { blobPath, blobsFolder, readPartialName, snapshotsFolder } from "../layout/layout.ts";
import { type FileMark, type JournalRecord, readJournal } from "./partial-journal.ts";
import { type Owner, type Standing, standingOf, standingOfWriter } from "./partial-owner.ts";

/** One writer's partial of a blob, its journal, or both. */
export interface PartialEntry {
  readonly digest: string;
  /** Absolute, as is `journal`; null where there is none. */
  readonly data: string | null;
  readonly journal: string | null;
  /** Bytes of the partial. */
  readonly size: number;
  /** Names that its file has; one of two may be somebody else's. */
  readonly names: number;
  /** Of its names; empty where they have none. */
  readonly writer: string;
  /** What the journal says; null where there is none that can be read. */
  readonly record: JournalRecord | null;
  /** When either was written last, ms. */
  readonly modifiedAt: number;
}

/** Those of a `blobs/` folder, of one blob where it is named. Throws `cache_unwritable`. */
export async function partialEntries(folder: string, digest?: string): Promise<PartialEntry[]> {
  const entries = new Map<string, PartialEntry>();
  for (const name of await namesIn(folder)) {
    const parsed = readPartialName(name);
    if (!parsed || (digest !== undefined && parsed.digest !== digest)) continue;
    const path = `${folder}/${name}`;
    const found = await fileAt(path);
    if (!found) continue;
    const key = `${parsed.digest} ${parsed.writer}`;
    const known = entries.get(key) ?? { ...none, digest: parsed.digest, writer: parsed.writer };
    const modifiedAt = Math.max(known.modifiedAt, found.mtimeMs);
    if (parsed.isJournal) entries.set(key, { ...known, modifiedAt, journal: path, record: await recordOf(path) });
    else entries.set(key, { ...known, modifiedAt, data: path, size: found.size, names: found.nlink });
  }
  return [...entries.values()];
}

const none = { data: null, journal: null, size: 0, names: 0, record: null, modifiedAt: 0 };

async function recordOf(journal: string): Promise<JournalRecord | null> {
  try {
    return await readJournal(journal);
  } catch (error) {
    throw cacheError(error, basename(journal));
  }
}

/** A plain file there; undefined for anything else: what a link leads to is never ours. */
export async function fileAt(path: string): Promise<Stats | undefined> {
  const found = await lstat(path).catch(() => undefined);
  return found?.isFile() ? found : undefined;
}

export function markOf({ ino, mtimeMs }: Stats): FileMark {
  return { inode: ino, modifiedAt: mtimeMs };
}

/** How its writer stands to us. */
export function standingOfEntry({ record, writer }: PartialEntry, self: Owner): Standing {
  return record ? standingOf(record.owner, self) : standingOfWriter(writer);
}

/** Whether the journal is all that is left of a download whose file became this blob, checked, and is it still. */
export function isOfBlob({ data, record }: PartialEntry, blob: Stats | undefined): boolean {
  if (data !== null || !record?.checked || !blob) return false;
  const { inode, modifiedAt } = markOf(blob);
  return record.checked.inode === inode && record.checked.modifiedAt === modifiedAt;
}

/** Whether this gateway stored the blob that lies there, and has checked it, as far as journals say. */
export async function hasStored(cacheDir: string, repo: string, digest: string, self: Owner): Promise<boolean> {
  const blob = await fileAt(blobPath(cacheDir, repo, digest));
  const entries = await partialEntries(blobsFolder(cacheDir, repo), digest);
  return entries.some((entry) => standingOfEntry(entry, self) === "ours" && isOfBlob(entry, blob));
}

/**
 * Removes an entry, and the blob too where only the entry's journal knows whose it is: one that no snapshot shows. Answers
 * with the paths. Throws `cache_unwritable`.
 */
export async function removeEntry(cacheDir: string, repo: string, entry: PartialEntry): Promise<string[]> {
  const blob = blobPath(cacheDir, repo, entry.digest);
  const isLost = isOfBlob(entry, await fileAt(blob)) && !(await isShown(cacheDir, repo, entry.digest));
  if (isLost) await remove(blob);
  return [...(isLost ? [blob] : []), ...(await removeTraces(entry))];
}

/** The same without the blob. */
export async function removeTraces({ data, journal }: PartialEntry): Promise<string[]> {
  // The journal last: it is what tells whose the others were.
  const gone = [data, journal].filter((path) => path !== null);
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
