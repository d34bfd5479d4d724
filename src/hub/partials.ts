// Unfinished files of this gateway in the cache: which nobody wants any more, and their removal.
// Only our own: other tools share the cache, and their partials and locks may belong to a download that is under way.
import { readdir, readlink, rm, stat } from "node:fs/promises";
import { basename } from "node:path";
import { systemCode } from "../core/errors.ts";
import { removeIfEmpty } from "./emptied.ts";
import { cacheError } from "./errors.ts";
import { isHeld } from "./in-use.ts";
import {
  blobPath,
  blobsFolder,
  isDigest,
  journalSuffix,
  partialPath,
  partialSuffix,
  repoFolder,
  repoOfFolder,
  snapshotsFolder,
} from "./layout.ts";
import { removePartial } from "./partial-file.ts";
import { isAnotherAlive, type JournalRecord, readJournal, thisOwner } from "./partial-journal.ts";

/**
 * Removes leftover partials, and whole files that a pull of several never came to link, unless they are for a model of
 * `wanted` (`owner/name:tag`, in any case) or being written. Answers with their paths inside `cacheDir`, sorted.
 */
export async function cleanPartials(
  cacheDir: string,
  wanted: ReadonlySet<string> = new Set(),
): Promise<readonly string[]> {
  const names = new Set([...wanted].map((id) => id.toLowerCase()));
  const removed: string[] = [];
  for (const folder of await namesIn(cacheDir)) {
    const repo = repoOfFolder(folder);
    if (repo === null) continue;
    const before = removed.length;
    for (const name of await namesIn(`${cacheDir}/${folder}`)) {
      if (name.endsWith(partialSuffix)) removed.push(...(await removeUnheld(cacheDir, `${folder}/${name}`)));
    }
    for (const entry of await unfinished(cacheDir, repo)) {
      const { record, partial } = entry;
      if (isHeld(partial) || (record && names.has(record.model.toLowerCase()))) continue;
      if (record && (await isBusyElsewhere(record, partial))) continue;
      removed.push(...(await removeEntry(cacheDir, repo, entry)));
    }
    if (removed.length > before) await removeEmptied(cacheDir, repo);
  }
  return removed.sort();
}

/**
 * After a model was linked: its files need no journal any more, and what a pull of an older commit left for it serves
 * nobody.
 */
export async function settleModel(options: {
  readonly cacheDir: string;
  readonly repo: string;
  readonly model: string;
  readonly blobs: readonly string[];
}): Promise<void> {
  const { cacheDir, repo, model, blobs } = options;
  for (const entry of await unfinished(cacheDir, repo)) {
    if (blobs.includes(entry.digest)) await removePartial(entry.partial);
    else if (!isHeld(entry.partial) && entry.record?.model.toLowerCase() === model.toLowerCase())
      await removeEntry(cacheDir, repo, entry);
  }
}

interface Unfinished {
  readonly digest: string;
  readonly partial: string;
  /** What the journal says; null where there is none that can be read. */
  readonly record: JournalRecord | null;
  /** Names in `blobs/`. */
  readonly names: readonly string[];
}

async function unfinished(cacheDir: string, repo: string): Promise<Unfinished[]> {
  const found = new Map<string, string[]>();
  for (const name of await namesIn(blobsFolder(cacheDir, repo))) {
    if (!name.endsWith(partialSuffix)) continue;
    const suffix = name.endsWith(journalSuffix) ? journalSuffix : partialSuffix;
    const digest = name.slice(0, -suffix.length);
    found.set(digest, [...(found.get(digest) ?? []), name]);
  }
  const entries: Unfinished[] = [];
  for (const [digest, names] of found) {
    if (!isDigest(digest)) continue;
    const partial = partialPath(cacheDir, repo, digest);
    const journal = names.find((name) => name.endsWith(journalSuffix));
    const path = `${blobsFolder(cacheDir, repo)}/${journal}`;
    entries.push({ digest, partial, names, record: journal ? await recordOf(path) : null });
  }
  return entries;
}

async function recordOf(journal: string): Promise<JournalRecord | null> {
  try {
    return (await readJournal(journal))?.record ?? null;
  } catch (error) {
    throw cacheError(error, basename(journal));
  }
}

/** The blob too, where it is whole and no snapshot shows it: only the journal knows that it was for this model. */
async function removeEntry(cacheDir: string, repo: string, { digest, partial, names }: Unfinished): Promise<string[]> {
  const folder = blobsFolder(cacheDir, repo).slice(cacheDir.length + 1);
  const gone = names.map((name) => `${folder}/${name}`);
  if (!(await isShown(cacheDir, repo, digest))) {
    const blob = blobPath(cacheDir, repo, digest);
    const there = await stat(blob).catch(() => undefined);
    if (there) gone.push(`${folder}/${digest}`);
    await remove(blob);
  }
  await removePartial(partial);
  return gone;
}

/** Whether a snapshot shows the blob, by a link of either kind. */
async function isShown(cacheDir: string, repo: string, digest: string): Promise<boolean> {
  const blob = await stat(blobPath(cacheDir, repo, digest)).catch(() => undefined);
  if (!blob || blob.nlink > 1) return blob !== undefined;
  const entries = await readdir(snapshotsFolder(cacheDir, repo), { recursive: true, withFileTypes: true }).catch(
    (error: unknown) => {
      if (systemCode(error) === "ENOENT") return [];
      throw cacheError(error, "a look at it");
    },
  );
  for (const entry of entries) {
    if (!entry.isSymbolicLink()) continue;
    const target = await readlink(`${entry.parentPath}/${entry.name}`).catch(() => "");
    if (basename(target) === digest) return true;
  }
  return false;
}

/** Whether another process may be at it: one that runs, or, where that cannot be seen from here, a fresh file. */
async function isBusyElsewhere({ owner }: JournalRecord, partial: string): Promise<boolean> {
  const self = thisOwner();
  const age = Date.now() - ((await stat(partial).catch(() => undefined))?.mtimeMs ?? 0);
  if (owner.boot === self.boot && owner.space === self.space) return isAnotherAlive(owner, self) && age < dayMs;
  return age < hourMs;
}

const hourMs = 3_600_000;
const dayMs = 24 * hourMs;

/** What an unfinished first pull has made; whatever else there is stays. */
async function removeEmptied(cacheDir: string, repo: string): Promise<void> {
  try {
    for (const folder of [blobsFolder(cacheDir, repo), snapshotsFolder(cacheDir, repo), repoFolder(cacheDir, repo)])
      await removeIfEmpty(folder);
  } catch (error) {
    throw cacheError(error, repo);
  }
}

async function removeUnheld(cacheDir: string, path: string): Promise<string[]> {
  if (isHeld(`${cacheDir}/${path}`)) return [];
  await remove(`${cacheDir}/${path}`);
  return [path];
}

async function remove(path: string): Promise<void> {
  await rm(path, { force: true }).catch((error: unknown) => {
    throw cacheError(error, basename(path));
  });
}

/** A folder's names; none where there is no such folder. */
async function namesIn(folder: string): Promise<string[]> {
  try {
    return await readdir(folder);
  } catch (error) {
    const code = systemCode(error);
    if (code === "ENOENT" || code === "ENOTDIR") return [];
    throw cacheError(error, "a look at it");
  }
}
