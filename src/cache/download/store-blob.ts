// One file into the cache's blobs, from the hub or from the disk: what is there of it is resumed, and it gets its name only when
// size and digest are right. Links and refs are link.ts's.
import { unlessLeft } from "../../core/unless-left.ts";
import { cacheError, cancelled, isStopping } from "../../hub/errors.ts";
import { blobPath, partialPath } from "../layout/layout.ts";
import { blobName, type HubFile } from "../layout/select.ts";
import type { DiskRoom } from "./disk-space.ts";
import { following, isOneOf } from "./hash.ts";
import { isHeldTwice } from "./in-use.ts";
import { openPartial, type PartialFile, resumableBytes } from "./partial-file.ts";
import { coveredBytes, frontOf } from "./ranges.ts";
import { mismatch } from "./transfer.ts";

/** What outlives a download that ended early. */
export interface KeepRules {
  /**
   * Whether a failure, or the gateway's shutdown, leaves what a later try can resume, whole shards and partials: true if there
   * will be one. Nothing is left of a pull that was cancelled otherwise.
   */
  readonly keepPartial?: boolean;
  /** Asked when it has ended early. */
  readonly isStillWanted?: () => boolean;
}

/** Whether there will be another try for which to keep what is there. */
export function keeps({ keepPartial, isStillWanted }: KeepRules, signal: AbortSignal): boolean {
  if (keepPartial !== true) return false;
  return isStopping(signal) || (isStillWanted ? isStillWanted() : !signal.aborted);
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
  readonly room: DiskRoom;
  /** A record of what is there after so many bytes. */
  readonly recordBytes?: number | undefined;
  /** A local file with the same bytes. */
  readonly cloneOf?: string | undefined;
  /** Brings what is missing. */
  fill(target: BlobTarget): Promise<void>;
  /** Called when all bytes are there and only the check and the flush to disk remain. */
  onVerify(): void;
}

export interface BlobTarget {
  readonly partial: PartialFile;
  /** What came before was wrong: the whole file in one piece. */
  readonly isSecondTry: boolean;
  write(position: number, buffers: readonly Buffer[]): Promise<void>;
}

/** Writers of this process, by partial: two never write the same blob. True once it is there. */
const active = new Map<string, Promise<boolean>>();

/**
 * Stores one file. Waits for another writer of this process that stores the same, and then finds it done. The caller holds the
 * blob's `partialPath`. Throws `checksum_mismatch`, `disk_full`, `cache_unwritable`, `cancelled`, and what `fill` throws.
 */
export async function storeBlob(order: BlobOrder): Promise<void> {
  const { cacheDir, repo, file, signal } = order;
  const path = partialPath(cacheDir, repo, blobName(file));
  for (let other = active.get(path); other; other = active.get(path)) if (await unlessLeft(other, signal)) return;
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
  const begin = () => openPartial({ ...order, path, size: file.size });
  let partial = await begin().catch(async (error: unknown) => {
    throw await room.explain(cacheError(error, file.path), file.size - (await resumableBytes(path, file.size)));
  });
  let isWrong = false;
  try {
    // What was kept of an earlier try may be wrong, or the ranges of a server: then once more, all in one piece.
    if (!(await fillAndCheck(order, partial, false))) {
      await partial.discard();
      partial = await begin();
      isWrong = !(await fillAndCheck(order, partial, true));
      if (isWrong) throw mismatch(file, "other bytes than its digest promises");
    }
    if (signal.aborted) throw cancelled(file.path);
    await partial.finish(blobPath(order.cacheDir, order.repo, blobName(file)));
  } catch (error) {
    const failure = cacheError(error, file.path);
    const explained = await room.explain(failure, file.size - coveredBytes(partial.extents()));
    // Only its own content can prove a partial wrong; an odd response proves nothing about the bytes that came before it.
    const isWorth = !isWrong && coveredBytes(partial.extents()) > 0;
    if (isWorth && (isHeldTwice(path) || keeps(order, signal))) await partial.keep();
    else await partial.discard();
    throw explained;
  }
}

/** Fetches what the partial lacks; answers whether it is the right file then. */
async function fillAndCheck(order: BlobOrder, partial: PartialFile, isSecondTry: boolean): Promise<boolean> {
  const { file, signal, room } = order;
  const left = () => file.size - coveredBytes(partial.extents());
  return following(partial.path, file.size, signal, async (follower) => {
    // The digest cannot be kept over a restart; the thread reads the prefix again while the rest comes in.
    follower.advance(frontOf(partial.extents()));
    await order.fill({
      partial,
      isSecondTry,
      async write(position, buffers) {
        await room.watch(left());
        await partial.write(position, buffers);
        follower.advance(frontOf(partial.extents()));
      },
    });
    order.onVerify();
    follower.advance(file.size);
    return isOneOf(await follower.digests(), blobName(file));
  });
}
