// The lock of a partial: one writer at a time, be it in another process, container or host that shares the cache.
import { lstat, rm, utimes } from "node:fs/promises";
import { basename } from "node:path";
import { GatewayError, systemCode } from "../../core/errors.ts";
import { isJsonObject } from "../../core/merge-patch.ts";
import { parseJson, readIfPresent } from "../../state/atomic-file.ts";
import { isAlive, ownStart, takeFile } from "../../state/lock.ts";
import { besidePartial } from "../layout/layout.ts";

export interface PartialLock {
  /** The lock was taken from another gateway, which may only be suspended: it may still write into its file. */
  readonly isBroken: boolean;
  /** False once another gateway has broken the lock. */
  isHeld(): Promise<boolean>;
  release(): Promise<void>;
}

interface Holder {
  readonly pid: number;
  /** Start time by the kernel's clock. */
  readonly started: string;
  /** Id of the gateway, that is of its state folder, which one process has at a time. */
  readonly gateway: string;
}

/** A writer in another container or on another host cannot be probed: it renews its lock this often. */
const renewMs = 15_000;
const staleMs = 60_000;

/** `partial`: the path of the blob's partial. Errors: `cache_unwritable` while another process writes it. */
export async function lockPartial(partial: string, gateway: string): Promise<PartialLock> {
  const path = besidePartial(partial, "lock");
  const text = JSON.stringify({ pid: process.pid, started: await ownStart(), gateway } satisfies Holder);
  let isBroken = false;
  const living = await takeFile(path, text, async (seen) => {
    const holder = readHolder(seen);
    if (await isHolding(path, holder, gateway)) return holder;
    isBroken ||= holder !== null && holder.gateway !== gateway;
    return null;
  });
  if (living)
    throw new GatewayError("cache_unwritable", `process ${living.pid} is downloading ${basename(partial)} already`);
  const renewal = setInterval(() => {
    const now = new Date();
    // Without the file the lock is lost, which the next record finds.
    utimes(path, now, now).catch(() => undefined);
  }, renewMs).unref();
  const isHeld = async (): Promise<boolean> => (await readIfPresent(path)) === text;
  return {
    isBroken,
    isHeld,
    release: async () => {
      clearInterval(renewal);
      if (await isHeld()) await rm(path, { force: true });
    },
  };
}

/** Who holds the lock of a partial; null where there is no lock. `isLive`: another process, which may be writing. */
export async function partialHolder(
  partial: string,
  gateway: string,
): Promise<{ readonly gateway: string; readonly isLive: boolean } | null> {
  const path = besidePartial(partial, "lock");
  const holder = readHolder(await readIfPresent(path));
  return holder && { gateway: holder.gateway, isLive: await isHolding(path, holder, gateway) };
}

async function isHolding(path: string, holder: Holder | null, gateway: string): Promise<boolean> {
  if (!holder) return false;
  // Writers of this process take turns; a lock that they left could not be deleted.
  if (holder.pid === process.pid && holder.started === (await ownStart())) return false;
  if (await isAlive(holder)) return true;
  return holder.gateway !== gateway && (await ageOf(path)) < staleMs;
}

/** A time to come is of a clock that was wrong. */
async function ageOf(path: string): Promise<number> {
  try {
    return Math.abs(Date.now() - (await lstat(path)).mtimeMs);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return Number.POSITIVE_INFINITY;
    throw error;
  }
}

/** What cannot be understood is of a process that is gone. */
function readHolder(text: string | null): Holder | null {
  if (text === null) return null;
  const value = parseJson(text);
  const { pid, started, gateway } = isJsonObject(value) ? value : {};
  return {
    pid: Number.isSafeInteger(pid) ? (pid as number) : 0,
    started: typeof started === "string" ? started : "",
    gateway: typeof gateway === "string" ? gateway : "",
  };
}
