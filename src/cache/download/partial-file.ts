// A blob on its way: its bytes under a name that nobody lists, and beside it the journal of which bytes are there.
// Written at any position; a kill loses what came in since the last record, a power cut what came in since the last sync.
import { lstat, open, rename, rm } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { GatewayError } from "../../core/errors.ts";
import { steadyNow } from "../../core/steady.ts";
import { cacheError } from "../../hub/errors.ts";
import { syncFolder } from "../../state/atomic-file.ts";
import { clipped, type Extents, frontOf, withExtent } from "./extents.ts";
import { markOf } from "./partial-entries.ts";
import type { FileMark } from "./partial-journal.ts";
import { type BeginOptions, beginPartial } from "./partial-takeover.ts";

export interface PartialFile {
  /** Of this writer alone. */
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

export interface PartialOptions extends BeginOptions {
  /** A record after so many bytes. */
  readonly recordBytes?: number | undefined;
}

/** What a kill may cost, besides what the connections had not written yet. */
const recordBytes = 2 * 1024 * 1024;
/** What a power cut may cost, in milliseconds of downloading. */
const syncMs = 2_000;

/**
 * Opens a partial, or goes on with what an earlier one left, as far as its journal vouches for it. Throws `cache_unwritable`,
 * `disk_full`, `cancelled`.
 */
export async function openPartial(options: PartialOptions): Promise<PartialFile> {
  const { model, size, self } = options;
  const recordEvery = options.recordBytes ?? recordBytes;
  const begun = await beginPartial(options);
  const { path, journalPath, journal } = begun;
  let { handle, written, synced } = begun;
  let { ino } = await handle.stat();
  let unrecorded = 0;
  let syncedAt = steadyNow();
  let failure: GatewayError | undefined;
  /** Records and syncs one after the other. */
  let chores = Promise.resolve();
  let queued = 0;

  async function record(checked?: FileMark): Promise<void> {
    await requireOwn();
    await journal.write({ model, size, written, synced, owner: self, ...(checked ? { checked } : {}) });
  }

  /** Somebody may have removed it, or taken it for a dead one's: what comes in would be written for nothing. */
  async function requireOwn(): Promise<void> {
    const there = await lstat(path).catch(() => undefined);
    if (there?.ino !== ino)
      throw new GatewayError("cache_unwritable", `${basename(path)} was taken away by another program.`);
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

  /** The journal last: it is what tells whose the partial was. */
  async function removeOwn(): Promise<void> {
    try {
      await rm(path, { force: true });
      await rm(journalPath, { force: true });
    } catch (error) {
      throw cacheError(error, basename(path));
    }
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
      chore(due ? syncNow : () => record());
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
        handle = await open(path, "wx");
        ino = (await handle.stat()).ino;
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
        await record(markOf(await handle.stat()));
        await journal.sync();
        await close();
        await rename(path, blob);
        await syncFolder(dirname(blob));
      } catch (error) {
        throw cacheError(error, basename(path));
      }
    },
    async keep() {
      // On a full disk these fail too: then the last record stands, and a few bytes more are fetched again.
      chore(() => record());
      chore(syncNow);
      await close();
      // What is not there any more needs no journal.
      if (failure && !(await lstat(path).catch(() => undefined))) await removeOwn();
    },
    async discard() {
      await close();
      await removeOwn();
    },
  };
}

function without(buffers: readonly Buffer[], bytes: number): readonly Buffer[] {
  let left = bytes;
  return buffers.flatMap((buffer) => {
    const cut = Math.min(left, buffer.length);
    left -= cut;
    return cut === buffer.length ? [] : [cut === 0 ? buffer : buffer.subarray(cut)];
  });
}
