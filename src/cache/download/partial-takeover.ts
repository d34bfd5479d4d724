// How a writer begins: with what an earlier one left, or from nothing; always with a file of its own, so that nobody writes
// into what another one has verified.
import { constants } from "node:fs";
import { chmod, copyFile, type FileHandle, open, rename, rm } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { GatewayError, systemCode } from "../../core/errors.ts";
import { cacheError } from "../../hub/errors.ts";
import { makeFolder } from "../../state/folder.ts";
import { partialNames, readPartialName } from "../layout/layout.ts";
import { clipped, coveredBytes, type Extents } from "./extents.ts";
import { readPieces } from "./local-pieces.ts";
import { type PartialEntry, partialEntries } from "./partial-entries.ts";
import { type JournalWriter, openJournal } from "./partial-journal.ts";
import { type Owner, type Standing, standingOf, writerName } from "./partial-owner.ts";

export interface BeginOptions {
  /** `partialPath` of the blob. */
  readonly path: string;
  readonly model: string;
  /** Bytes of the whole file. */
  readonly size: number;
  readonly self: Owner;
  readonly signal: AbortSignal;
  /** A file to begin as a clone of, where the file system has clones that take no room. */
  readonly cloneOf?: string | undefined;
}

export interface Begun {
  readonly path: string;
  readonly journalPath: string;
  readonly handle: FileHandle;
  readonly journal: JournalWriter;
  readonly written: Extents;
  readonly synced: Extents;
}

/** Longer than a download waits for its hub while it is alive. */
const patientMs = 6 * 60_000;
/** Who cannot be seen from here is at it as long as it writes this often. */
const writingMs = 60_000;

/** Throws `cache_unwritable`, also where another gateway is at it, `disk_full`, `cancelled`. */
export async function beginPartial(options: BeginOptions): Promise<Begun> {
  const { path, size, self } = options;
  try {
    await makeFolder(dirname(path));
    const entries = await entriesFor(path);
    refuseSecondWriter(path, entries, self);
    for (const left of usableOf(entries, size, self)) {
      const begun = await goOnWith(left, options);
      if (begun) return begun;
    }
    return await beginAnew(options);
  } catch (error) {
    throw cacheError(error, basename(path));
  }
}

/** Bytes of an earlier try that a writer can go on with; `inPlace`: those of them that need no further room. */
export async function partialBytes(
  path: string,
  size: number,
  self: Owner,
): Promise<{ readonly there: number; readonly inPlace: number }> {
  const [best] = usableOf(await entriesFor(path), size, self);
  const there = best ? coveredBytes(best.written) : 0;
  return { there, inPlace: best && isFree(best.standing) ? there : 0 };
}

function entriesFor(path: string): Promise<PartialEntry[]> {
  return partialEntries(dirname(path), readPartialName(basename(path))?.digest);
}

/** Both would be right, but one is enough. */
function refuseSecondWriter(path: string, entries: readonly PartialEntry[], self: Owner): void {
  for (const { data, record, modifiedAt } of entries) {
    if (data === null || !record) continue;
    const standing = standingOf(record.owner, self);
    const age = Date.now() - modifiedAt;
    if (standing === "alive" && age < patientMs)
      throw new GatewayError(
        "cache_unwritable",
        `Process ${record.owner.pid} is downloading ${basename(path)} already.`,
      );
    if (standing === "unknown" && age < writingMs)
      throw new GatewayError("cache_unwritable", `Another gateway is downloading ${basename(path)} already.`);
  }
}

interface Left {
  readonly data: string;
  readonly journal: string;
  readonly standing: Standing;
  readonly written: Extents;
  readonly synced: Extents;
}

/** What can be gone on with, the most of it first. */
function usableOf(entries: readonly PartialEntry[], size: number, self: Owner): Left[] {
  const usable = entries.flatMap(({ data, journal, record, size: there, names }): Left[] => {
    // Another name of the file may be somebody's who does not expect it to change.
    if (data === null || journal === null || record?.size !== size || names > 1) return [];
    const { owner } = record;
    // What the system had not brought to the disk is gone when it was started anew.
    const [written, synced] = [owner.boot === self.boot ? record.written : record.synced, record.synced].map(
      (extents) => clipped(extents, Math.min(size, there)),
    );
    if (!written || !synced || written.length === 0) return [];
    return [{ data, journal, standing: standingOf(owner, self), written, synced }];
  });
  return usable.toSorted(
    (a, b) =>
      Number(isFree(b.standing)) - Number(isFree(a.standing)) || coveredBytes(b.written) - coveredBytes(a.written),
  );
}

/** Nobody writes it any more. */
function isFree(standing: Standing): boolean {
  return standing === "ours" || standing === "dead";
}

/** Null where it cannot be had. */
async function goOnWith(left: Left, options: BeginOptions): Promise<Begun | null> {
  const { path, journalPath } = ownNames(options.path);
  const free = isFree(left.standing);
  const { written } = left;
  const synced = free ? left.synced : [];
  // First, so that there is never a partial that nobody answers for.
  const journal = await startJournal(journalPath, options, written, synced);
  let handle: FileHandle | undefined;
  try {
    handle = free ? await openOwn(left.data) : undefined;
    // A rename succeeds for one of two that try. What somebody may still write is copied: he goes on with his own.
    if (handle) await rename(left.data, path);
    else await copyWritten(left.data, path, written, options.signal);
    handle ??= await open(path, constants.O_RDWR | constants.O_NOFOLLOW);
    // Where it stays it is found to be nobody's, as there is no partial to it.
    if (free) await rm(left.journal, { force: true }).catch(() => undefined);
    return { path, journalPath, handle, journal, written, synced };
  } catch (error) {
    await handle?.close();
    await journal.close();
    await rm(path, { force: true });
    await rm(journalPath, { force: true });
    // Gone, as another one was faster, or not for us to read.
    if (["ENOENT", "EACCES", "EPERM"].includes(systemCode(error) ?? "")) return null;
    throw error;
  }
}

/** Undefined for a file that another user's process left, who does not let us write it. */
async function openOwn(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_RDWR | constants.O_NOFOLLOW);
  } catch (error) {
    if (["EACCES", "EPERM"].includes(systemCode(error) ?? "")) return undefined;
    throw error;
  }
}

async function beginAnew(options: BeginOptions): Promise<Begun> {
  const { path, journalPath } = ownNames(options.path);
  const { cloneOf, size } = options;
  const journal = await startJournal(journalPath, options, [], []);
  try {
    const whole: Extents = cloneOf !== undefined && (await isCloned(cloneOf, path)) ? [[0, size]] : [];
    const handle = await open(path, whole.length > 0 ? "r+" : "wx");
    return { path, journalPath, handle, journal, written: whole, synced: [] };
  } catch (error) {
    await journal.close();
    await rm(path, { force: true });
    await rm(journalPath, { force: true });
    throw error;
  }
}

async function startJournal(
  journalPath: string,
  { model, size, self }: BeginOptions,
  written: Extents,
  synced: Extents,
): Promise<JournalWriter> {
  const journal = await openJournal(journalPath);
  try {
    await journal.write({ model, size, written, synced, owner: self });
    return journal;
  } catch (error) {
    await journal.close();
    await rm(journalPath, { force: true });
    throw error;
  }
}

function ownNames(path: string): { path: string; journalPath: string } {
  const names = partialNames(readPartialName(basename(path))?.digest ?? "", writerName());
  return { path: `${dirname(path)}/${names.data}`, journalPath: `${dirname(path)}/${names.journal}` };
}

/** Answers at once: a clone shares its bytes with the original until one of them changes. */
async function isCloned(from: string, to: string): Promise<boolean> {
  try {
    await copyFile(from, to, constants.COPYFILE_EXCL | constants.COPYFILE_FICLONE_FORCE);
    // It comes with the original's mode, which may forbid to write it.
    await chmod(to, 0o644);
    return true;
  } catch {
    await rm(to, { force: true });
    return false;
  }
}

async function copyWritten(from: string, to: string, written: Extents, signal: AbortSignal): Promise<void> {
  if (await isCloned(from, to)) return;
  const handle = await open(to, "wx");
  try {
    for await (const { position, bytes } of readPieces(from, written, signal)) {
      for (let done = 0; done < bytes.length; )
        done += (await handle.write(bytes, done, bytes.length - done, position + done)).bytesWritten;
    }
  } finally {
    await handle.close();
  }
}
