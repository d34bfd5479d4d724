// A blob on its way: the partial has its bytes, the sidecar lists those that are on the disk, the lock keeps other writers out.
// Written at any position. A kill or a power failure loses what came in since the last record.
import { constants } from "node:fs";
import { chmod, copyFile, type FileHandle, open, rename, rm } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { GatewayError } from "../../core/errors.ts";
import { steadyNow } from "../../core/steady.ts";
import { cacheError, orCacheError } from "../../hub/errors.ts";
import { syncFolder } from "../../state/atomic-file.ts";
import { makeFolder } from "../../state/folder.ts";
import { besidePartial } from "../layout/layout.ts";
import { fileAt, lockPartial, type PartialLock, readSidecar, writeSidecar } from "./beside-partial.ts";
import { clipped, coveredBytes, type Extents, frontOf, withExtent } from "./ranges.ts";

export interface PartialOptions {
  /** `partialPath` of the blob. */
  readonly path: string;
  /** `owner/name:tag` of the model that it is for. */
  readonly model: string;
  /** Bytes of the whole file. */
  readonly size: number;
  /** Id of this gateway. */
  readonly gateway: string;
  /** A file to begin as a clone of, if the file system has clones that take no space. */
  readonly cloneOf?: string | undefined;
  /** A record after so many bytes. */
  readonly recordBytes?: number | undefined;
}

/** What a kill or a power failure may cost, the less of the two. */
const recordBytes = 64 * 1024 * 1024;
const recordMs = 2_000;

/**
 * Opens a partial, or resumes one as far as its sidecar vouches for it. Throws `cache_unwritable`, also while another process
 * writes it, and `disk_full`.
 */
export async function openPartial(options: PartialOptions): Promise<PartialFile> {
  const { path, gateway } = options;
  return orCacheError(basename(path), async () => {
    await makeFolder(dirname(path));
    const lock = await lockPartial(path, gateway);
    try {
      return new PartialFile(options, lock, await begin(options, !lock.isBroken));
    } catch (error) {
      await lock.release().catch(() => undefined);
      throw error;
    }
  });
}

/** All methods throw `disk_full`, `cache_unwritable`. */
export class PartialFile {
  readonly path: string;
  readonly #options: PartialOptions;
  readonly #lock: PartialLock;
  readonly #handle: FileHandle;
  #written: Extents;
  #unrecorded = 0;
  #recordedAt = steadyNow();
  #recording: Promise<void> | undefined;
  #failure: GatewayError | undefined;

  constructor(options: PartialOptions, lock: PartialLock, { handle, written }: Begun) {
    this.path = options.path;
    this.#options = options;
    this.#lock = lock;
    this.#handle = handle;
    this.#written = written;
  }

  extents(): Extents {
    return this.#written;
  }

  async write(position: number, buffers: readonly Buffer[]): Promise<void> {
    if (this.#failure) throw this.#failure;
    let at = position;
    await orCacheError(basename(this.path), async () => {
      for (let rest = buffers; rest.length > 0; ) {
        const { bytesWritten } = await this.#handle.writev(rest, at);
        at += bytesWritten;
        rest = without(rest, bytesWritten);
      }
    });
    this.#written = withExtent(this.#written, position, at);
    this.#unrecorded += at - position;
    const most = this.#options.recordBytes ?? recordBytes;
    if (this.#unrecorded >= most || steadyNow() - this.#recordedAt >= recordMs) this.#recording ??= this.#tryRecord();
  }

  /** Drops what is not reached from the beginning without a gap. */
  forgetIslands(): void {
    this.#written = clipped(this.#written, frontOf(this.#written));
  }

  /** All bytes are right: flushes them and renames the file to the blob. The sidecar stays until that is linked. */
  async finish(blob: string): Promise<void> {
    await this.#recording;
    if (this.#failure) throw this.#failure;
    await orCacheError(basename(this.path), async () => {
      await this.#record(true);
      await this.#requireOwn();
      await this.#close();
      await rename(this.path, blob);
      await syncFolder(dirname(blob));
      await this.#lock.release();
    });
  }

  /** Stops writing; a later writer resumes. */
  async keep(): Promise<void> {
    await this.#recording;
    // On a full disk this fails: then the last record stands, and a few bytes more are fetched again.
    await this.#tryRecord();
    await this.#close();
    if (!(await fileAt(this.path))) await this.#removeOwn().catch(() => undefined);
    await this.#lock.release().catch(() => undefined);
  }

  /** Stops writing and removes it. */
  async discard(): Promise<void> {
    await orCacheError(basename(this.path), async () => {
      await this.#close();
      await this.#removeOwn();
      await this.#lock.release();
    });
  }

  async #tryRecord(): Promise<void> {
    try {
      await this.#record();
    } catch (error) {
      this.#failure ??= cacheError(error, basename(this.path));
    } finally {
      this.#recording = undefined;
    }
  }

  /** The bytes first: the sidecar lists none that a power failure could take. */
  async #record(isStored = false): Promise<void> {
    const { model, size, gateway } = this.#options;
    const written = this.#written;
    this.#unrecorded = 0;
    this.#recordedAt = steadyNow();
    await this.#handle.sync();
    await this.#requireOwn();
    await writeSidecar(this.path, { model, size, gateway, written, ...(isStored ? { stored: true } : {}) });
  }

  /** A person may have deleted it, or another gateway replaced it after it broke the lock. */
  async #requireOwn(): Promise<void> {
    const [there, own] = [await fileAt(this.path), await this.#handle.stat()];
    if (there?.ino !== own.ino)
      throw new GatewayError("cache_unwritable", `${basename(this.path)} was taken away by another program`);
  }

  /** The sidecar last: it names the owner of the partial. */
  async #removeOwn(): Promise<void> {
    if (!(await this.#lock.isHeld())) return;
    await rm(this.path, { force: true });
    await rm(besidePartial(this.path, "sidecar"), { force: true });
  }

  async #close(): Promise<void> {
    await this.#recording;
    await this.#handle.close().catch(() => undefined);
  }
}

/** Bytes of an earlier try that a writer can resume. */
export async function resumableBytes(path: string, size: number): Promise<number> {
  return coveredBytes(await resumable(path, size));
}

interface Begun {
  readonly handle: FileHandle;
  readonly written: Extents;
}

async function begin(options: PartialOptions, mayResume: boolean): Promise<Begun> {
  const { path, model, size, gateway, cloneOf } = options;
  const left = mayResume ? await resumable(path, size) : [];
  if (left.length > 0) {
    await writeSidecar(path, { model, size, gateway, written: left });
    return { handle: await open(path, constants.O_RDWR | constants.O_NOFOLLOW), written: left };
  }
  try {
    // Another gateway, whose lock was broken, keeps a file without a name: its late bytes reach no file of ours.
    await rm(path, { force: true });
    await writeSidecar(path, { model, size, gateway, written: [] });
    const isWhole = cloneOf !== undefined && (await isCloned(cloneOf, path));
    return { handle: await open(path, isWhole ? "r+" : "wx"), written: isWhole ? [[0, size]] : [] };
  } catch (error) {
    for (const place of [path, besidePartial(path, "sidecar")]) await rm(place, { force: true });
    throw error;
  }
}

async function resumable(path: string, size: number): Promise<Extents> {
  const [file, sidecar] = [await fileAt(path), await readSidecar(path)];
  // A second name of the file may belong to a program that does not expect it to change.
  if (!file || file.nlink > 1 || sidecar?.size !== size) return [];
  return clipped(sidecar.written, Math.min(size, file.size));
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
