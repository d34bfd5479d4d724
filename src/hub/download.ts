// One file from the hub into the cache's blobs: streamed, hashed on the way, renamed only when size and digest are right.
// Links and refs are link.ts's. Whatever ends a download before that leaves no partial behind.
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { type FileHandle, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { GatewayError } from "../core/errors.ts";
import { syncFolder } from "../desired/atomic-file.ts";
import type { HubClient } from "./client.ts";
import { cacheError, cancelled, transferError } from "./errors.ts";
import { blobPath, partialPath } from "./layout.ts";
import type { HubFile } from "./select.ts";

export interface BlobDownload {
  readonly client: HubClient;
  readonly cacheDir: string;
  readonly repo: string;
  readonly commit: string;
  readonly file: HubFile;
  readonly signal: AbortSignal;
  /** Called for every piece, with the bytes of this file received so far. */
  onBytes(completed: number): void;
  /** Called when all bytes are there and only the check and the flush to disk remain. */
  onVerify(): void;
}

export interface Digests {
  /** Lower-case hex. */
  readonly sha256: string;
  /** What git calls the content. */
  readonly gitSha1: string;
}

/** Written pieces are gathered up to this, so that small network reads do not each cost a trip to the file system. */
const writeBytes = 1024 * 1024;

/** Partials being written by this process, so that two pulls with a file in common never write the same one. */
const active = new Map<string, Promise<unknown>>();

/** Whether this process is writing that partial. */
export function isActive(partial: string): boolean {
  return active.has(partial);
}

/** The name of a file's blob: its sha256, or git's sha1 where the hub knows no other. */
export function blobName(file: HubFile): string {
  return file.sha256 ?? file.oid;
}

/**
 * Downloads one file. Waits for a download of the same file that is under way, and then finds it done.
 * Throws `hub_*`, `checksum_mismatch`, `disk_full`, `cache_unwritable`, `cancelled`.
 */
export async function downloadBlob(download: BlobDownload): Promise<void> {
  const { cacheDir, repo, file, signal } = download;
  const partial = partialPath(cacheDir, repo, blobName(file));
  for (let other = active.get(partial); other; other = active.get(partial)) {
    await settledOrAborted(other, signal);
    if (await hasBlob(cacheDir, repo, file)) return;
  }
  const work = fetchBlob(download, partial);
  active.set(partial, work);
  try {
    await work;
  } finally {
    active.delete(partial);
  }
}

/** Whether the blob is there with the right size. The name says the digest: blobs get it only once they are verified. */
export async function hasBlob(cacheDir: string, repo: string, file: HubFile): Promise<boolean> {
  const entry = await stat(blobPath(cacheDir, repo, blobName(file))).catch(() => undefined);
  return entry?.isFile() === true && entry.size === file.size;
}

/** Hashes a file on disk, a megabyte at a time. Throws `cache_unwritable` where it cannot be read, `cancelled`. */
export async function hashFile(path: string, signal?: AbortSignal): Promise<Digests> {
  try {
    const sums = createDigests((await stat(path)).size);
    for await (const chunk of createReadStream(path, { highWaterMark: writeBytes, ...(signal ? { signal } : {}) })) {
      if (Buffer.isBuffer(chunk)) sums.update(chunk);
    }
    return sums.digest();
  } catch (error) {
    throw signal?.aborted ? cancelled(basename(path)) : cacheError(error, basename(path));
  }
}

/** Whether digests are those that the hub announced for a file. */
export function digestsMatch(file: HubFile, digests: Digests): boolean {
  return blobName(file) === (file.sha256 === undefined ? digests.gitSha1 : digests.sha256);
}

async function fetchBlob(download: BlobDownload, partial: string): Promise<void> {
  const { client, cacheDir, repo, commit, file, signal } = download;
  const blob = blobPath(cacheDir, repo, blobName(file));
  let handle: FileHandle | undefined;
  try {
    const opened = await client.openFile(repo, commit, file.path, { from: 0, signal });
    try {
      checkAnnounced(file, opened.sha256, opened.total);
      await mkdir(dirname(partial), { recursive: true });
      handle = await open(partial, "w");
      const digests = await receive(opened.body, handle, download);
      download.onVerify();
      if (!digestsMatch(file, digests)) throw mismatch(file, "other bytes than its digest says");
    } finally {
      opened.body.destroy();
    }
    // The rename may survive a power cut that the bytes do not, unless they were flushed first.
    await handle.sync();
    await handle.close();
    if (signal.aborted) throw cancelled(file.path);
    await rename(partial, blob);
    await syncFolder(dirname(blob));
  } catch (error) {
    await handle?.close().catch(() => undefined);
    await rm(partial, { force: true });
    throw cacheError(error, file.path);
  }
}

async function receive(body: AsyncIterable<unknown>, handle: FileHandle, download: BlobDownload): Promise<Digests> {
  const { file, signal } = download;
  const sums = createDigests(file.size);
  let waiting: Buffer[] = [];
  let waitingBytes = 0;
  let received = 0;

  async function flush(): Promise<void> {
    const pieces = waiting;
    waiting = [];
    waitingBytes = 0;
    await writeAll(handle, pieces, file.path);
  }

  try {
    for await (const chunk of body) {
      if (!Buffer.isBuffer(chunk)) continue;
      received += chunk.length;
      if (received > file.size) throw mismatch(file, `more than its ${file.size} bytes`);
      sums.update(chunk);
      waiting.push(chunk);
      waitingBytes += chunk.length;
      download.onBytes(received);
      if (waitingBytes >= writeBytes) await flush();
    }
  } catch (error) {
    throw transferError(error, file.path, signal);
  }
  await flush();
  if (received < file.size) {
    throw new GatewayError("hub_unreachable", `${file.path} ended after ${received} of ${file.size} bytes.`);
  }
  return sums.digest();
}

async function writeAll(handle: FileHandle, pieces: readonly Buffer[], what: string): Promise<void> {
  try {
    if (pieces.length > 0)
      await handle.appendFile(pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces));
  } catch (error) {
    throw cacheError(error, what);
  }
}

/** The hub's own headers must agree with its file list: else the list is stale, or the answer is for another file. */
function checkAnnounced(file: HubFile, sha256: string | undefined, total: number | undefined): void {
  if (file.sha256 !== undefined && sha256 !== undefined && sha256 !== file.sha256)
    throw mismatch(file, "another digest");
  if (total !== undefined && total !== file.size) throw mismatch(file, `another size (${total})`);
}

function mismatch(file: HubFile, what: string): GatewayError {
  return new GatewayError("checksum_mismatch", `${file.path} came with ${what}; it was not kept.`);
}

function createDigests(size: number): { update(chunk: Buffer): void; digest(): Digests } {
  const sha256 = createHash("sha256");
  // git's sha1 names only files outside LFS, which are small: hashing the large ones twice would be for nothing.
  const sha1 = size <= gitLimit ? createHash("sha1").update(`blob ${size}\0`) : undefined;
  return {
    update(chunk) {
      sha256.update(chunk);
      sha1?.update(chunk);
    },
    digest: () => ({ sha256: sha256.digest("hex"), gitSha1: sha1?.digest("hex") ?? "" }),
  };
}

/** The hub takes no file above 10 MB outside LFS. */
const gitLimit = 64 * 1024 * 1024;

async function settledOrAborted(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const done = () => {
      signal.removeEventListener("abort", done);
      resolve();
    };
    signal.addEventListener("abort", done);
    work.then(done, done);
    if (signal.aborted) done();
  });
  if (signal.aborted) throw cancelled("a file that another pull is downloading");
}
