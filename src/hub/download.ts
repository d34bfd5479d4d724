// One file from the hub into the cache's blobs: what is there of it is gone on with, and it gets its name only when size
// and digest are right. Links and refs are link.ts's.
import { stat } from "node:fs/promises";
import type { GatewayError } from "../core/errors.ts";
import type { HubClient } from "./client.ts";
import { cacheError, cancelled, isStopping } from "./errors.ts";
import { coveredBytes, frontOf } from "./extents.ts";
import { digestsMatch, followFile } from "./hash.ts";
import { blobPath, partialPath } from "./layout.ts";
import { openPartial, type PartialFile } from "./partial-file.ts";
import type { Room } from "./room.ts";
import { blobName, type HubFile } from "./select.ts";
import { defaultTuning, mismatch, type TransferTuning, transfer } from "./transfer.ts";

export interface BlobDownload {
  readonly client: HubClient;
  readonly cacheDir: string;
  readonly repo: string;
  readonly commit: string;
  readonly file: HubFile;
  /** The model that it is for, `owner/name:tag`. */
  readonly model: string;
  /** Whether a failure leaves what can be gone on with. A cancelled download leaves nothing, unless the gateway stops. */
  readonly keepPartial: boolean;
  readonly signal: AbortSignal;
  readonly room: Room;
  readonly tuning?: DownloadTuning | undefined;
  /** `received`: new bytes from the network; `completed`: how many of this file are there. */
  onBytes(received: number, completed: number): void;
  /** Called when all bytes are there and only the check and the flush to disk remain. */
  onVerify(): void;
}

/** What tests and measurements set; the defaults are for the world. */
export interface DownloadTuning extends Partial<TransferTuning> {
  /** A record of what is there after so many bytes. */
  readonly recordBytes?: number;
}

/** Downloads of this process that are under way, by partial: two never write the same one. */
const active = new Map<string, Promise<unknown>>();

/**
 * Downloads one file. Waits for a download of the same file that is under way, and then finds it done.
 * Throws `hub_*`, `checksum_mismatch`, `disk_full`, `cache_unwritable`, `cancelled`.
 */
export async function downloadBlob(download: BlobDownload): Promise<void> {
  const { cacheDir, repo, file, signal } = download;
  const path = partialPath(cacheDir, repo, blobName(file));
  for (let other = active.get(path); other; other = active.get(path)) {
    await settledOrAborted(other, signal);
    if (await hasBlob(cacheDir, repo, file)) return;
  }
  const work = fetchBlob(download, path);
  active.set(path, work);
  try {
    await work;
  } finally {
    active.delete(path);
  }
}

/** Whether the blob is there with the right size. The name says the digest: blobs get it only once they are verified. */
export async function hasBlob(cacheDir: string, repo: string, file: HubFile): Promise<boolean> {
  const entry = await stat(blobPath(cacheDir, repo, blobName(file))).catch(() => undefined);
  return entry?.isFile() === true && entry.size === file.size;
}

async function fetchBlob(download: BlobDownload, path: string): Promise<void> {
  const { file, model, signal, room, tuning } = download;
  const partial = await openPartial({ path, model, size: file.size, recordBytes: tuning?.recordBytes });
  const left = () => file.size - coveredBytes(partial.extents());
  try {
    // What was kept of an earlier try may be wrong, or the ranges of a server: then once more, all in one piece.
    if (!(await fill(download, partial, false))) {
      await partial.reset();
      if (!(await fill(download, partial, true))) throw mismatch(file, "other bytes than its digest says");
    }
    if (signal.aborted) throw cancelled(file.path);
    await partial.finish(blobPath(download.cacheDir, download.repo, blobName(file)));
  } catch (error) {
    const failure = cacheError(error, file.path);
    const explained = await room.explain(failure, left());
    if (download.keepPartial && coveredBytes(partial.extents()) > 0 && canGoOn(failure, signal)) await partial.keep();
    else await partial.discard();
    throw explained;
  }
}

/** Fetches what the partial lacks; answers whether it is the right file then. */
async function fill(download: BlobDownload, partial: PartialFile, plain: boolean): Promise<boolean> {
  const { file, signal, room } = download;
  const follower = followFile(partial.path, file.size);
  const stop = () => void follower.stop();
  signal.addEventListener("abort", stop);
  try {
    if (signal.aborted) throw cancelled(file.path);
    // The digest cannot be kept over a restart; the thread reads the prefix again while the rest comes in.
    follower.advance(frontOf(partial.extents()));
    await transfer({
      ...download,
      partial,
      plain,
      tuning: { ...defaultTuning, ...download.tuning },
      async write(position, buffers) {
        await room.watch(file.size - coveredBytes(partial.extents()));
        await partial.write(position, buffers);
        follower.advance(frontOf(partial.extents()));
      },
    });
    download.onVerify();
    follower.advance(file.size);
    return digestsMatch(file, await follower.digests());
  } finally {
    signal.removeEventListener("abort", stop);
    await follower.stop();
  }
}

/** Whether another try could use what is there. */
function canGoOn(error: GatewayError, signal: AbortSignal): boolean {
  if (signal.aborted) return isStopping(signal);
  return !["checksum_mismatch", "hub_not_found", "not_supported", "internal"].includes(error.code);
}

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
