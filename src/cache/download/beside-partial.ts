// What lies beside a partial: the sidecar, which lists the bytes on the disk, and the lock, which keeps a second writer out, be it
// in another process, container or host that shares the cache.
import type { Stats } from "node:fs";
import { lstat, rm, utimes } from "node:fs/promises";
import { basename } from "node:path";
import { GatewayError, ignoreAbsent } from "../../core/errors.ts";
import { isJsonObject } from "../../core/json.ts";
import { parseJson, readIfPresent, writeAtomic } from "../../state/atomic-file.ts";
import { isAlive, ownStart, takeFile } from "../../state/lock.ts";
import { besidePartial } from "../layout/layout.ts";
import { type Extents, readExtents } from "./ranges.ts";

export interface Sidecar {
  /** `owner/name:tag` of the model that the file is for. */
  readonly model: string;
  /** Bytes of the whole file. */
  readonly size: number;
  /** Id of the gateway that downloads it. */
  readonly gateway: string;
  /** On the disk: there after a power failure too. */
  readonly written: Extents;
  /** The whole file has the right digest, and gets the blob's name; the sidecar goes once a snapshot links that. */
  readonly stored?: true;
}

/** A plain file; undefined for anything else: the target of a link is never ours. */
export async function fileAt(path: string): Promise<Stats | undefined> {
  const found = await lstat(path).catch(() => undefined);
  return found?.isFile() ? found : undefined;
}

export async function writeSidecar(partial: string, sidecar: Sidecar): Promise<void> {
  await writeAtomic(besidePartial(partial, "sidecar"), JSON.stringify(sidecar));
}

/** Null if there is none, or a damaged one. */
export async function readSidecar(partial: string): Promise<Sidecar | null> {
  const path = besidePartial(partial, "sidecar");
  if (!(await fileAt(path))) return null;
  const value = parseJson((await readIfPresent(path)) ?? "");
  if (!isJsonObject(value)) return null;
  const { model, size, gateway, stored } = value;
  const written = readExtents(value["written"]);
  if (!written || typeof model !== "string" || typeof size !== "number" || typeof gateway !== "string") return null;
  return { model, size, gateway, written, ...(stored === true ? { stored } : {}) };
}

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

/** The holder of a partial's lock; null if there is no lock. `isLive`: another process, which may be writing. */
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
  if (holder.gateway === gateway) return false;
  const file = await lstat(path).catch(ignoreAbsent);
  // A time in the future is of a clock that was wrong.
  return file !== null && Math.abs(Date.now() - file.mtimeMs) < staleMs;
}

/** A lock that cannot be parsed is of a process that is gone. */
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
