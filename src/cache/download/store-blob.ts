// One file into the cache's blobs, wherever its bytes come from: what is there of it is gone on with, and it gets its name
// only when size and digest are right. Links and refs are link.ts's.
import { cacheError, cancelled, isStopping } from "../../hub/errors.ts";
import { blobPath, partialPath } from "../layout/layout.ts";
import { blobName, type HubFile } from "../layout/select.ts";
import type { Room } from "./disk-space.ts";
import { coveredBytes, frontOf } from "./extents.ts";
import { digestsMatch, followFile } from "./hash.ts";
import { isHeldTwice } from "./in-use.ts";
import { openPartial, type PartialFile, resumableBytes } from "./partial-file.ts";
import { mismatch } from "./transfer.ts";

/** What outlives a download that ended early. */
export interface KeepRules {
  /**
   * Whether a failure, or the gateway's stop, leaves what a later try can go on with, whole shards and partials: true where
   * there will be one. Nothing is left of a pull that was cancelled otherwise.
   */
  readonly keepPartial?: boolean;
  /** Asked when it has ended early. */
  readonly isStillWanted?: () => boolean;
}

export interface BlobOrder extends KeepRules {
  readonly cacheDir: string;
  readonly repo: string;
  readonly file: HubFile;
  /** The model that it is for, `owner/name:tag`. */
  readonly model: string;
  /** Id of this gateway. */
  readonly gateway: string;
  readonly signal: AbortSignal;
  readonly room: Room;
  /** A record of what is there after so many bytes. */
  readonly recordBytes?: number | undefined;
  /** A local file with the same bytes. */
  readonly cloneOf?: string;
  /** Brings what is missing. `anew`: what was there, or came before, is wrong. */
  fill(target: BlobTarget, anew: boolean): Promise<void>;
  /** Called when all bytes are there and only the check and the flush to disk remain. */
  onVerify(): void;
}

export interface BlobTarget {
  readonly partial: PartialFile;
  write(position: number, buffers: readonly Buffer[]): Promise<void>;
}

/** Writers of this process, by partial: two never write the same blob. True once it is there. */
const active = new Map<string, Promise<boolean>>();

/**
 * Stores one file. Waits for another one of this process that stores the same, and then finds it done. The caller holds the
 * blob's `partialPath`. Throws `checksum_mismatch`, `disk_full`, `cache_unwritable`, `cancelled`, and what `fill` throws.
 */
export async function storeBlob(order: BlobOrder): Promise<void> {
  const { cacheDir, repo, file, signal } = order;
  const path = partialPath(cacheDir, repo, blobName(file));
  for (let other = active.get(path); other; other = active.get(path)) {
    if (await doneOrAborted(other, signal)) return;
  }
  const work = store(order, path);
  active.set(
    path,
    work.then(
      () => true,
      () => false,
    ),
  );
  try {
    await work;
  } finally {
    active.delete(path);
  }
}

async function store(order: BlobOrder, path: string): Promise<void> {
  const { file, signal, room } = order;
  const partial = await openPartial({ ...order, path, size: file.size }).catch(async (error: unknown) => {
    throw await room.explain(cacheError(error, file.path), file.size - (await resumableBytes(path, file.size)));
  });
  let isWrong = false;
  try {
    // What was kept of an earlier try may be wrong, or the ranges of a server: then once more, all in one piece.
    if (!(await fillAndCheck(order, partial, false))) {
      await partial.reset();
      isWrong = !(await fillAndCheck(order, partial, true));
      if (isWrong) throw mismatch(file, "other bytes than its digest says");
    }
    if (signal.aborted) throw cancelled(file.path);
    await partial.finish(blobPath(order.cacheDir, order.repo, blobName(file)));
  } catch (error) {
    const failure = cacheError(error, file.path);
    const explained = await room.explain(failure, file.size - coveredBytes(partial.extents()));
    // Only its own content can prove a partial wrong; an odd answer says nothing of the bytes that came before it.
    const isWorth = !isWrong && coveredBytes(partial.extents()) > 0;
    if (isWorth && (isHeldTwice(path) || keeps(order, signal))) await partial.keep();
    else await partial.discard();
    throw explained;
  }
}

/** Whether there will be another try for which to keep what is there. */
export function keeps({ keepPartial, isStillWanted }: KeepRules, signal: AbortSignal): boolean {
  if (keepPartial !== true) return false;
  return isStopping(signal) || (isStillWanted ? isStillWanted() : !signal.aborted);
}

/** Fetches what the partial lacks; answers whether it is the right file then. */
async function fillAndCheck(order: BlobOrder, partial: PartialFile, anew: boolean): Promise<boolean> {
  const { file, signal, room } = order;
  const follower = followFile(partial.path, file.size);
  const stop = () => void follower.stop();
  signal.addEventListener("abort", stop);
  try {
    if (signal.aborted) throw cancelled(file.path);
    // The digest cannot be kept over a restart; the thread reads the prefix again while the rest comes in.
    follower.advance(frontOf(partial.extents()));
    const target: BlobTarget = {
      partial,
      async write(position, buffers) {
        await room.watch(file.size - coveredBytes(partial.extents()));
        await partial.write(position, buffers);
        follower.advance(frontOf(partial.extents()));
      },
    };
    await order.fill(target, anew);
    order.onVerify();
    follower.advance(file.size);
    return digestsMatch(file, await follower.digests());
  } finally {
    signal.removeEventListener("abort", stop);
    await follower.stop();
  }
}

async function doneOrAborted(work: Promise<boolean>, signal: AbortSignal): Promise<boolean> {
  const isDone = await new Promise<boolean>((resolve) => {
    const giveUp = () => resolve(false);
    signal.addEventListener("abort", giveUp, { once: true });
    void work.then((done) => {
      signal.removeEventListener("abort", giveUp);
      resolve(done);
    });
    if (signal.aborted) giveUp();
  });
  if (signal.aborted) throw cancelled("a file that another pull is downloading");
  return isDone;
}
