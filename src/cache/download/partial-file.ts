// A blob on its way: the partial has its bytes, the sidecar says which of them are there, the lock keeps other writers out.
// Written at any position. A kill or a power cut loses what came in since the last record.
import { constants } from "node:fs";
import { chmod, copyFile, type FileHandle, lstat, open, rename, rm } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { GatewayError, systemCode } from "../../core/errors.ts";
import { steadyNow } from "../../core/steady.ts";
import { cacheError } from "../../hub/errors.ts";
import { syncFolder } from "../../state/atomic-file.ts";
import { makeFolder } from "../../state/folder.ts";
import { besidePartial } from "../layout/layout.ts";
import { clipped, coveredBytes, type Extents, frontOf, withExtent } from "./extents.ts";
import { lockPartial } from "./partial-lock.ts";
import { fileAt, markOf, readSidecar, type Sidecar, writeSidecar } from "./partial-sidecar.ts";

export interface PartialFile {
  readonly path: string;
  extents(): Extents;
  /** Writes at a position. Throws `disk_full`, `cache_unwritable`. */
  write(position: number, buffers: readonly Buffer[]): Promise<void>;
  /** Forgets what is not reached from the beginning without a gap. */
  forgetIslands(): void;
  /** All bytes are wrong: starts over. */
  reset(): Promise<void>;
  /** All bytes are right: flushes them and gives the file its name. The sidecar stays until the file is linked. */
  finish(blob: string): Promise<void>;
  /** Stops writing; a later writer resumes. */
  keep(): Promise<void>;
  /** Stops writing and removes it. */
  discard(): Promise<void>;
}

export interface PartialOptions {
  /** `partialPath` of the blob. */
  readonly path: string;
  /** `owner/name:tag` of the model that it is for. */
  readonly model: string;
  /** Bytes of the whole file. */
  readonly size: number;
  /** Id of this gateway. */
  readonly gateway: string;
  /** A file to begin as a clone of, where the file system has clones that take no space. */
  readonly cloneOf?: string | undefined;
  /** A record after so many bytes. */
  readonly recordBytes?: number | undefined;
}

/** What a kill or a power cut may cost, the less of the two. */
const recordBytes = 64 * 1024 * 1024;
const recordMs = 2_000;

/**
 * Opens a partial, or resumes one as far as its sidecar vouches for it. Throws `cache_unwritable`, also while another process
 * writes it, and `disk_full`.
 */
export async function openPartial(options: PartialOptions): Promise<PartialFile> {
  const { path, model, size, gateway } = options;
  const recordEvery = options.recordBytes ?? recordBytes;
  const failed = (error: unknown): GatewayError => cacheError(error, basename(path));
  const lock = await lockOf(options).catch((error: unknown) => Promise.reject(failed(error)));
  const begun = await begin(options, !lock.isBroken).catch(async (error: unknown) => {
    await lock.release().catch(() => undefined);
    throw failed(error);
  });
  let { handle, written } = begun;
  let unrecorded = 0;
  let recordedAt = steadyNow();
  let failure: GatewayError | undefined;
  /** Records one after the other. */
  let records = Promise.resolve();
  let queued = 0;

  /** The bytes first: the sidecar names none that a power cut could take. */
  async function record(more: Partial<Sidecar> = {}): Promise<void> {
    const reached = written;
    await handle.sync();
    await requireOwn();
    await writeSidecar(path, { model, size, gateway, written: reached, ...more });
  }

  /** A person may have deleted it, or another gateway replaced it after it broke the lock. */
  async function requireOwn(): Promise<void> {
    const [there, own] = [await fileAt(path), await handle.stat()];
    if (there?.ino !== own.ino)
      throw new GatewayError("cache_unwritable", `${basename(path)} was taken away by another program`);
  }

  function queueRecord(): void {
    queued++;
    unrecorded = 0;
    recordedAt = steadyNow();
    records = records
      .then(() => record())
      .catch((error: unknown) => {
        failure ??= failed(error);
      })
      .finally(() => void queued--);
  }

  /** The sidecar last: it names the owner of the partial. */
  async function removeOwn(): Promise<void> {
    if (!(await lock.isHeld())) return;
    await rm(path, { force: true });
    await rm(besidePartial(path, "sidecar"), { force: true });
  }

  async function close(): Promise<void> {
    await records;
    await handle.close().catch(() => undefined);
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
        throw failed(error);
      }
      const isDue = unrecorded >= recordEvery || steadyNow() - recordedAt >= recordMs;
      if (isDue && queued === 0) queueRecord();
    },
    forgetIslands() {
      written = clipped(written, frontOf(written));
    },
    async reset() {
      await records;
      try {
        written = [];
        await record();
        await handle.close();
        // A new file: a process that has the old one open must not find it changed.
        await rm(path, { force: true });
        handle = await open(path, "wx");
      } catch (error) {
        throw failed(error);
      }
    },
    async finish(blob) {
      try {
        await records;
        if (failure) throw failure;
        await record({ stored: markOf(await handle.stat()) });
        await requireOwn();
        await close();
        await rename(path, blob);
        await syncFolder(dirname(blob));
        await lock.release();
      } catch (error) {
        throw failed(error);
      }
    },
    async keep() {
      // On a full disk this fails too: then the last record stands, and a few bytes more are fetched again.
      queueRecord();
      await close();
      if (failure && !(await lstat(path).catch(() => undefined))) await removeOwn().catch(() => undefined);
      await lock.release().catch(() => undefined);
    },
    async discard() {
      try {
        await close();
        await removeOwn();
        await lock.release();
      } catch (error) {
        throw failed(error);
      }
    },
  };
}

/** Bytes of an earlier try that a writer can resume. */
export async function resumableBytes(path: string, size: number): Promise<number> {
  return coveredBytes(await resumable(path, size));
}

async function lockOf({ path, gateway }: PartialOptions): ReturnType<typeof lockPartial> {
  await makeFolder(dirname(path));
  return lockPartial(path, gateway);
}

interface Begun {
  readonly handle: FileHandle;
  readonly written: Extents;
}

async function begin(options: PartialOptions, mayResume: boolean): Promise<Begun> {
  const { path, model, size, gateway, cloneOf } = options;
  const left = mayResume ? await resumable(path, size) : [];
  const resumed = left.length > 0 ? await openOwn(path) : undefined;
  try {
    // Another gateway, whose lock was broken, keeps a file without a name: its late bytes reach no file of ours.
    if (!resumed) await rm(path, { force: true });
    await writeSidecar(path, { model, size, gateway, written: resumed ? left : [] });
    if (resumed) return { handle: resumed, written: left };
    const isWhole = cloneOf !== undefined && (await isCloned(cloneOf, path));
    return { handle: await open(path, isWhole ? "r+" : "wx"), written: isWhole ? [[0, size]] : [] };
  } catch (error) {
    await resumed?.close();
    if (!resumed) for (const left of [path, besidePartial(path, "sidecar")]) await rm(left, { force: true });
    throw error;
  }
}

async function resumable(path: string, size: number): Promise<Extents> {
  const [file, sidecar] = [await fileAt(path), await readSidecar(path)];
  // A second name of the file may belong to a program that does not expect it to change.
  if (!file || file.nlink > 1 || sidecar?.size !== size) return [];
  return clipped(sidecar.written, Math.min(size, file.size));
}

/** Undefined for a file of another user, who does not let us write it. */
async function openOwn(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, constants.O_RDWR | constants.O_NOFOLLOW);
  } catch (error) {
    if (["EACCES", "EPERM"].includes(systemCode(error) ?? "")) return undefined;
    throw error;
  }
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

function without(buffers: readonly Buffer[], bytes: number): readonly Buffer[] {
  let left = bytes;
  return buffers.flatMap((buffer) => {
    const cut = Math.min(left, buffer.length);
    left -= cut;
    return cut === buffer.length ? [] : [cut === 0 ? buffer : buffer.subarray(cut)];
  });
}
