// Which unfinished files of the cache are in use: by pulls of this process, counted here, and by other processes, containers and
// hosts that share the cache, by a lock beside the partial.
import { lstat, rm, utimes } from "node:fs/promises";
import { basename } from "node:path";
import { GatewayError, ignoreAbsent } from "../../core/errors.ts";
import { readIfPresent } from "../../state/atomic-file.ts";
import { holderOf, isAlive, type LockHolder, ownHolder, takeFile } from "../../state/lock.ts";
import { besidePartial } from "../layout/layout.ts";

const held = new Map<string, number>();

/** Marks paths until the answer is called: no cleaning takes them. A path may be held more than once. */
export function holdPaths(paths: Iterable<string>): () => void {
  const own = new Set(paths);
  for (const path of own) held.set(path, (held.get(path) ?? 0) + 1);
  return () => {
    for (const path of own) {
      const left = (held.get(path) ?? 1) - 1;
      if (left === 0) held.delete(path);
      else held.set(path, left);
    }
    own.clear();
  };
}

export function isHeld(path: string): boolean {
  return held.has(path);
}

export interface PartialLock {
  /** It was taken from another gateway, which may only be suspended: that may still write into its file. */
  readonly isBroken: boolean;
  release(): Promise<void>;
}

/** A writer in another container or on another host cannot be probed: it renews its lock this often. */
const renewMs = 15_000;
const staleMs = 60_000;

/** `gateway`: the id of this one, by which the lock names it. Errors: `cache_unwritable` while another process writes the partial. */
export async function lockPartial(partial: string, gateway: string): Promise<PartialLock> {
  const path = besidePartial(partial, "lock");
  const text = JSON.stringify(await ownHolder(gateway));
  let isBroken = false;
  const living = await takeFile(path, text, async (seen) => {
    const holder = seen === null ? null : holderOf(seen);
    if (holder && (await isWriting(path, holder, gateway))) return holder;
    isBroken ||= holder !== null && holder.id !== gateway;
    return null;
  });
  if (living)
    throw new GatewayError("cache_unwritable", `process ${living.pid} is downloading ${basename(partial)} already`);
  const renewal = setInterval(() => {
    const now = new Date();
    // Without the file the lock is lost, which the next record of the partial finds.
    utimes(path, now, now).catch(() => undefined);
  }, renewMs).unref();
  return {
    isBroken,
    release: async () => {
      clearInterval(renewal);
      if ((await readIfPresent(path)) === text) await rm(path, { force: true });
    },
  };
}

/** The gateway that the partial's lock names; null if there is no lock. `isLive`: another process may be writing. */
export async function partialHolder(
  partial: string,
  gateway: string,
): Promise<{ readonly gateway: string; readonly isLive: boolean } | null> {
  const path = besidePartial(partial, "lock");
  const text = await readIfPresent(path);
  if (text === null) return null;
  const holder = holderOf(text);
  return { gateway: holder.id, isLive: await isWriting(path, holder, gateway) };
}

async function isWriting(path: string, holder: LockHolder, gateway: string): Promise<boolean> {
  const own = await ownHolder(gateway);
  // Writers of this process take turns; a lock that they left could not be deleted.
  if (holder.pid === own.pid && holder.started === own.started) return false;
  if (await isAlive(holder)) return true;
  if (holder.id === gateway) return false;
  const file = await lstat(path).catch(ignoreAbsent);
  // A time in the future is of a clock that was wrong.
  return file !== null && Math.abs(Date.now() - file.mtimeMs) < staleMs;
}
