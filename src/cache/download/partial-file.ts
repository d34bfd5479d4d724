// A blob on its way: the partial has its bytes, the sidecar lists those that are on the disk, the lock keeps other writers out.
// Written at any position. A kill or a power failure loses what came in since the last record.
import { constants, type Stats } from "node:fs";
import { chmod, copyFile, type FileHandle, lstat, open, rename, rm } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { GatewayError } from "../../core/errors.ts";
import { isJsonObject, parseJson } from "../../core/json.ts";
import { steadyNow } from "../../core/steady.ts";
import { cacheError, orCacheError } from "../../hub/errors.ts";
import { readIfPresent, writeAtomic } from "../../state/atomic-file.ts";
import { makeFolder, syncFolder } from "../../state/folder.ts";
import { besidePartial } from "../layout/layout.ts";
import { clipped, coveredBytes, type Extents, readExtents, withExtent } from "./extents.ts";
import { lockPartial, type PartialLock } from "./in-use.ts";

export interface Sidecar {
  /** `owner/name:tag` of the model that the file is for. */
  readonly model: string;
  /** Bytes of the whole file. */
  readonly size: number;
  /** Id of the gateway that downloads it. */
  readonly gateway: string;
  /** On the disk: there after a power failure too. */
  readonly written: Extents;
  /** The whole file is there and has the right digest. */
  readonly verified: boolean;
}

export interface PartialOptions extends Pick<Sidecar, "model" | "size" | "gateway"> {
  /** `partialPath` of the blob. */
  readonly path: string;
  /** A file to begin as a clone of, if the file system has clones that take no space. */
  readonly cloneOf?: string | undefined;
  /** A record after so many bytes. */
  readonly recordBytes?: number | undefined;
}

/** What a kill or a power failure may cost, the less of the two. */
const mostUnrecorded = 64 * 1024 * 1024;
const recordMs = 2_000;

/**
 * Opens a partial, or resumes one as far as its sidecar vouches for it. Throws `cache_unwritable`, also while another process
 * writes it, and `disk_full`.
 */
export async function openPartial(options: PartialOptions): Promise<PartialFile> {
  const { path, size, gateway } = options;
  return orCacheError(basename(path), async () => {
    await makeFolder(dirname(path));
    const lock = await lockPartial(path, gateway);
    let there = nothing;
    try {
      if (!lock.isBroken) there = await kept(path, size);
      if (there.written.length === 0) return await begun(options, lock);
      await writeSidecar(options, there);
      return new PartialFile(options, lock, await open(path, constants.O_RDWR | constants.O_NOFOLLOW), there);
    } catch (error) {
      if (there.written.length === 0) await removePartial(path);
      await lock.release().catch(() => undefined);
      throw error;
    }
  });
}

async function begun(options: PartialOptions, lock: PartialLock): Promise<PartialFile> {
  const { path, size, cloneOf } = options;
  // Another gateway, whose lock was broken, keeps a file without a name: its late bytes reach no file of ours.
  await rm(path, { force: true });
  await writeSidecar(options, nothing);
  const isWhole = cloneOf !== undefined && (await isCloned(cloneOf, path));
  const handle = await open(path, isWhole ? "r+" : "wx");
  return new PartialFile(options, lock, handle, isWhole ? { written: [[0, size]], verified: false } : nothing);
}

/** The sidecar last: it names the owner of the partial. */
async function removePartial(path: string): Promise<void> {
  await rm(path, { force: true });
  await rm(besidePartial(path, "sidecar"), { force: true });
}

/** All methods throw `disk_full`, `cache_unwritable`. */
export class PartialFile {
  readonly path: string;
  readonly #options: PartialOptions;
  readonly #lock: PartialLock;
  readonly #handle: FileHandle;
  #written: Extents;
  #isVerified: boolean;
  #unrecorded = 0;
  #recordedAt = steadyNow();
  #recording: Promise<void> | undefined;
  #failure: GatewayError | undefined;

  constructor(options: PartialOptions, lock: PartialLock, handle: FileHandle, there: Progress) {
    this.path = options.path;
    this.#options = options;
    this.#lock = lock;
    this.#handle = handle;
    this.#written = there.written;
    this.#isVerified = there.verified;
  }

  /** For a thread that writes; valid until `finish` or `keep`. */
  get fd(): number {
    return this.#handle.fd;
  }

  extents(): Extents {
    return this.#written;
  }

  isVerified(): boolean {
    return this.#isVerified;
  }

  /** Returns how many bytes that were. */
  async write(position: number, buffers: readonly Buffer[]): Promise<number> {
    if (this.#failure) throw this.#failure;
    const bytes = await orCacheError(basename(this.path), () => this.#writeAll(position, buffers));
    this.note(withExtent(this.#written, position, position + bytes), bytes);
    return bytes;
  }

  /** `bytes` more were written through `fd`; `written` is all that is there now. */
  note(written: Extents, bytes: number): void {
    if (this.#failure) throw this.#failure;
    this.#written = written;
    this.#unrecorded += bytes;
    const most = this.#options.recordBytes ?? mostUnrecorded;
    // Beside the next writes: a sync takes a disk as long as they do.
    if (this.#unrecorded >= most || steadyNow() - this.#recordedAt >= recordMs) void this.#record();
  }

  /** A disk that is almost full takes a part, and then fails. */
  async #writeAll(position: number, buffers: readonly Buffer[]): Promise<number> {
    const total = buffers.reduce((sum, { length }) => sum + length, 0);
    const { bytesWritten } = await this.#handle.writev(buffers, position);
    if (bytesWritten < total)
      await this.#writeAll(position + bytesWritten, [Buffer.concat(buffers).subarray(bytesWritten)]);
    return total;
  }

  /** Drops what is there from a position on; it is written again. */
  forgetFrom(position: number): void {
    this.#written = clipped(this.#written, position);
  }

  /** All bytes are there and have the right digest. */
  async setVerified(): Promise<void> {
    this.#isVerified = true;
    await this.#recordNow();
  }

  /** Renames the verified file to the blob. */
  async finish(blob: string): Promise<void> {
    await orCacheError(basename(this.path), async () => {
      await this.#requireOwn();
      await this.#close();
      await rename(this.path, blob);
      await syncFolder(dirname(blob));
      await rm(besidePartial(this.path, "sidecar"), { force: true });
      await this.#lock.release();
    });
  }

  /** Stops writing; a later writer resumes, if there is anything. */
  async keep(): Promise<void> {
    // On a full disk this fails: then the last record stands, and a few bytes more are fetched again.
    await this.#recordNow().catch(() => undefined);
    try {
      const isGone = (await fileAt(this.path)) === undefined;
      const isUseless = isGone || (coveredBytes(this.#written) === 0 && (await this.#isOwn()));
      await this.#close();
      if (isUseless) await removePartial(this.path);
    } finally {
      await this.#lock.release();
    }
  }

  async #recordNow(): Promise<void> {
    await this.#recording;
    await this.#record();
    if (this.#failure) throw this.#failure;
  }

  /** Starts a record, or joins the one under way. Never rejects: the next write throws its failure. */
  #record(): Promise<void> {
    this.#recording ??= this.#writeRecord()
      .catch((error: unknown) => {
        this.#failure ??= cacheError(error, basename(this.path));
      })
      .finally(() => {
        this.#recording = undefined;
      });
    return this.#recording;
  }

  /** The bytes first: the sidecar lists none that a power failure could take. */
  async #writeRecord(): Promise<void> {
    const there = { written: this.#written, verified: this.#isVerified };
    this.#unrecorded = 0;
    this.#recordedAt = steadyNow();
    await this.#handle.sync();
    await this.#requireOwn();
    await writeSidecar(this.#options, there);
  }

  async #requireOwn(): Promise<void> {
    if (await this.#isOwn()) return;
    throw new GatewayError("cache_unwritable", `${basename(this.path)} was taken away by another program`);
  }

  /** False once a person has deleted it, or another gateway broke the lock and begins again. */
  async #isOwn(): Promise<boolean> {
    const [there, own] = [await fileAt(this.path), await this.#handle.stat()];
    return there?.ino === own.ino;
  }

  async #close(): Promise<void> {
    await this.#recording;
    await this.#handle.close().catch(() => undefined);
  }
}

type Progress = Pick<Sidecar, "written" | "verified">;

const nothing: Progress = { written: [], verified: false };

/** What an earlier try left that a writer can resume. */
export async function kept(path: string, size: number): Promise<Progress> {
  const [file, sidecar] = [await fileAt(path), await readSidecar(path)];
  if (!file || sidecar?.size !== size) return nothing;
  const written = clipped(sidecar.written, Math.min(size, file.size));
  return { written, verified: sidecar.verified && coveredBytes(written) === size };
}

async function writeSidecar({ path, model, size, gateway }: PartialOptions, there: Progress): Promise<void> {
  await writeAtomic(
    besidePartial(path, "sidecar"),
    JSON.stringify({ model, size, gateway, ...there } satisfies Sidecar),
  );
}

/** Null if there is none, or a damaged one. */
export async function readSidecar(partial: string): Promise<Sidecar | null> {
  const path = besidePartial(partial, "sidecar");
  const value = (await fileAt(path)) ? parseJson((await readIfPresent(path)) ?? "") : null;
  if (!isJsonObject(value)) return null;
  const { model, size, gateway, verified } = value;
  const written = readExtents(value["written"]);
  if (!written || typeof model !== "string" || typeof size !== "number" || typeof gateway !== "string") return null;
  return { model, size, gateway, written, verified: verified === true };
}

/** A plain file; undefined for anything else: the target of a link is never ours. */
export async function fileAt(path: string): Promise<Stats | undefined> {
  const found = await lstat(path).catch(() => undefined);
  return found?.isFile() ? found : undefined;
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
