// A blob on its way: its bytes under a name that nobody lists, and beside it the journal of which bytes are there.
// Written at any position; a kill loses what came in since the last record, a power cut what came in since the last sync.
import { type FileHandle, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { GatewayError } from "../core/errors.ts";
import { steadyNow } from "../core/steady.ts";
import { syncFolder } from "../desired/atomic-file.ts";
import { makeFolder } from "../desired/folder.ts";
import { cacheError } from "./errors.ts";
import { clipped, coveredBytes, type Extents, frontOf, withExtent } from "./extents.ts";
import { journalPathOf } from "./layout.ts";
import {
  isAnotherAlive,
  type JournalWriter,
  type Owner,
  openJournal,
  readJournal,
  thisOwner,
} from "./partial-journal.ts";

export interface PartialFile {
  readonly path: string;
  extents(): Extents;
  /** Writes at a position. Throws `disk_full`, `cache_unwritable`. */
  write(position: number, buffers: readonly Buffer[]): Promise<void>;
  /** Forgets what is not reached from the beginning without a gap. */
  forgetIslands(): void;
  /** All bytes are wrong: starts over. */
  reset(): Promise<void>;
  /** All bytes are right: flushes them and gives the file its name. The journal stays until the file is linked. */
  finish(blob: string): Promise<void>;
  /** Stops writing; what is there can be gone on with. */
  keep(): Promise<void>;
  /** Stops writing and removes it. */
  discard(): Promise<void>;
}

export interface PartialOptions {
  readonly path: string;
  readonly model: string;
  /** Bytes of the whole file. */
  readonly size: number;
  /** A record after so many bytes. */
  readonly recordBytes?: number | undefined;
}

/** What a kill may cost, besides what the connections had not written yet. */
const recordBytes = 2 * 1024 * 1024;
/** A writer writes at least this often; without that the process with its id is another one by now. */
const busyMs = 60_000;
/** What a power cut may cost, in milliseconds of downloading. */
const syncMs = 2_000;

/** Opens a partial, or goes on with the one that is there, as far as its journal vouches for it. */
export async function openPartial({ path, model, size, ...options }: PartialOptions): Promise<PartialFile> {
  const recordEvery = options.recordBytes ?? recordBytes;
  const owner = thisOwner();
  await refuseSecondWriter(path, owner);
  const found = await findPartial(path, size, owner.boot);
  let written = found.extents;
  let synced: Extents = found.synced;
  let unrecorded = 0;
  let syncedAt = steadyNow();
  let failure: GatewayError | undefined;
  let journal: JournalWriter;
  let handle: FileHandle;
  /** Records and syncs one after the other. */
  let chores = Promise.resolve();
  let queued = 0;

  try {
    await makeFolder(dirname(path));
    // First, so that there is never a partial that nobody answers for.
    journal = await openJournal(journalPathOf(path), found.sequence);
    await record();
    handle = await open(path, written.length > 0 ? "r+" : "w");
  } catch (error) {
    throw cacheError(error, basename(path));
  }

  async function record(): Promise<void> {
    await journal.write({ model, size, written, synced, owner });
  }

  async function syncNow(): Promise<void> {
    const reached = written;
    await handle.datasync();
    synced = reached;
    await record();
    await journal.sync();
  }

  function chore(work: () => Promise<void>): void {
    queued++;
    chores = chores.then(work).then(
      () => void queued--,
      (error: unknown) => {
        queued--;
        failure ??= cacheError(error, basename(path));
      },
    );
  }

  async function close(): Promise<void> {
    await chores;
    await handle.close().catch(() => undefined);
    await journal.close().catch(() => undefined);
  }

  return {
    path,
    extents: () => written,
    async write(position, buffers) {
      try {
        if (failure) throw failure;
        let at = position;
        for (let rest = buffers; rest.length > 0; ) {
          const { bytesWritten } = await handle.writev(rest, at);
          at += bytesWritten;
          rest = without(rest, bytesWritten);
        }
        written = withExtent(written, position, at);
        unrecorded += at - position;
      } catch (error) {
        throw cacheError(error, basename(path));
      }
      if (unrecorded < recordEvery || queued > 0) return;
      unrecorded = 0;
      const due = steadyNow() - syncedAt >= syncMs;
      if (due) syncedAt = steadyNow();
      chore(due ? syncNow : record);
    },
    forgetIslands() {
      written = clipped(written, frontOf(written));
      synced = clipped(synced, frontOf(written));
    },
    async reset() {
      await chores;
      try {
        written = [];
        synced = [];
        await record();
        await handle.close();
        // A new file, as whoever else has the old one open must not find it changed.
        await rm(path, { force: true });
        handle = await open(path, "w");
      } catch (error) {
        throw cacheError(error, basename(path));
      }
    },
    async finish(blob) {
      try {
        await chores;
        if (failure) throw failure;
        await handle.sync();
        synced = written;
        await record();
        // What gets the blob's name must be what was hashed: a second writer may have begun anew under this name.
        const [here, there] = await Promise.all([handle.stat(), stat(path)]);
        if (here.ino !== there.ino) throw new GatewayError("cache_unwritable", `${basename(path)} was replaced`);
        await close();
        await rename(path, blob);
        await syncFolder(dirname(blob));
      } catch (error) {
        throw cacheError(error, basename(path));
      }
    },
    async keep() {
      // On a full disk these fail too: then the last record stands, and a few bytes more are fetched again.
      chore(record);
      chore(syncNow);
      await close();
    },
    async discard() {
      await close();
      await removePartial(path);
    },
  };
}

/** Removes a partial and its journal. The journal last: it is what tells whose the partial was. */
export async function removePartial(path: string): Promise<void> {
  try {
    await rm(path, { force: true });
    await rm(journalPathOf(path), { force: true });
  } catch (error) {
    throw cacheError(error, basename(path));
  }
}

/** Bytes of a partial that a pull can go on with. */
export async function partialBytes(path: string, size: number): Promise<number> {
  return coveredBytes((await findPartial(path, size, thisOwner().boot)).extents);
}

/** Two processes that write one partial would both be right, until one of them gets wrong bytes. */
async function refuseSecondWriter(path: string, self: Owner): Promise<void> {
  const other = (await readJournal(journalPathOf(path)).catch(() => null))?.record.owner;
  if (!other || !isAnotherAlive(other, self)) return;
  const writtenAt = (await stat(path).catch(() => undefined))?.mtimeMs ?? 0;
  if (Date.now() - writtenAt > busyMs) return;
  throw new GatewayError("cache_unwritable", `Process ${other.pid} is downloading ${basename(path)} already.`);
}

interface Found {
  readonly extents: Extents;
  readonly synced: Extents;
  /** Of the journal's last record; 0 where there is none that counts. */
  readonly sequence: number;
}

async function findPartial(path: string, size: number, boot: string): Promise<Found> {
  const none = { extents: [], synced: [], sequence: 0 };
  try {
    const found = await readJournal(journalPathOf(path));
    const entry = await stat(path).catch(() => undefined);
    if (!found || !entry?.isFile() || found.record.size !== size) return none;
    const { record, sequence } = found;
    // What the system had not brought to the disk is gone when it was started anew.
    const extents = clipped(record.owner.boot === boot ? record.written : record.synced, Math.min(size, entry.size));
    return { extents, synced: clipped(record.synced, Math.min(size, entry.size)), sequence };
  } catch (error) {
    throw cacheError(error, basename(path));
  }
}

function without(buffers: readonly Buffer[], bytes: number): readonly Buffer[] {
  let left = bytes;
  return buffers.flatMap((buffer) => {
    const cut = Math.min(left, buffer.length);
    left -= cut;
    return cut === buffer.length ? [] : [cut === 0 ? buffer : buffer.subarray(cut)];
  });
}
