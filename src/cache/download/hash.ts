// Digests of files: of one that is complete, and of one that is still being written, as far as it is there.
// A large file is hashed in a thread of its own; a small one is not worth starting it.
import { createHash } from "node:crypto";
import { readFile, realpath, rm, stat } from "node:fs/promises";
import { basename, dirname } from "node:path";
import { Worker } from "node:worker_threads";
import { ignoreDangling } from "../../core/errors.ts";
import { cacheError, cancelled, orCacheError } from "../../hub/errors.ts";
import { isDigest } from "../layout/layout.ts";

export interface Digests {
  /** Lower-case hex. */
  readonly sha256: string;
  /** What git calls the content; empty for a file too large for git. */
  readonly gitSha1: string;
}

/** What the thread gets when it starts; afterwards it gets each new front, and answers once with {@link Digests}. */
export interface HashJob {
  readonly path: string;
  readonly size: number;
  readonly git: boolean;
}

/** Hashes a file while it is written. */
export interface Follower {
  /** The file is there, and final, up to `front`. */
  advance(front: number): void;
  /** Once all of it is there. Throws `cache_unwritable` if it cannot be read, `cancelled` when stopped before. */
  digests(): Promise<Digests>;
  /** Ends it, finished or not. */
  stop(): Promise<void>;
}

/** Up to here a file is hashed in one go in this thread: that takes a millisecond, a thread's start some twenty. */
const smallBytes = 1024 * 1024;
/** The thread is notified after so many new bytes. */
const stepBytes = 8 * 1024 * 1024;
/** The hub takes no file above 10 MB outside LFS: hashing the large ones twice would be for nothing. */
const gitLimit = 64 * 1024 * 1024;

/** Whether the digest is one of these: a blob is named by its sha256, or by git's sha1 outside LFS. */
export function isOneOf({ sha256, gitSha1 }: Digests, digest: string): boolean {
  return digest === sha256 || digest === gitSha1;
}

/** Hashes a complete file. Throws `cache_unwritable` if it cannot be read, `cancelled`. */
export async function hashFile(path: string, signal?: AbortSignal): Promise<Digests> {
  const { size } = await orCacheError(basename(path), () => stat(path));
  return following(path, size, signal, (follower) => {
    follower.advance(size);
    return follower.digests();
  });
}

/** Runs `work` with a follower of the file, which ends with it or when the signal aborts. The file must exist at the first advance. */
export async function following<T>(
  path: string,
  size: number,
  signal: AbortSignal | undefined,
  work: (follower: Follower) => Promise<T>,
): Promise<T> {
  if (signal?.aborted) throw cancelled(basename(path));
  const job: HashJob = { path, size, git: size <= gitLimit };
  const follower = size <= smallBytes ? hashSmall(job) : hashInThread(job);
  const stop = () => void follower.stop();
  signal?.addEventListener("abort", stop);
  try {
    return await work(follower);
  } finally {
    signal?.removeEventListener("abort", stop);
    await follower.stop();
  }
}

function hashSmall({ path }: HashJob): Follower {
  return {
    advance: () => undefined,
    async digests() {
      const bytes = await orCacheError(basename(path), () => readFile(path));
      const gitSha1 = createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
      return { sha256: createHash("sha256").update(bytes).digest("hex"), gitSha1 };
    },
    stop: () => Promise.resolve(),
  };
}

function hashInThread(job: HashJob): Follower {
  let worker: Worker | undefined;
  let announced = 0;
  let settle: (outcome: Digests | Error) => void = () => undefined;
  const outcome = new Promise<Digests | Error>((resolve) => {
    settle = resolve;
  });

  function start(): Worker {
    const thread = new Worker(new URL("./hash-worker.js", import.meta.url), { workerData: job, name: "hash" });
    thread.on("message", settle);
    thread.on("error", (error) => settle(cacheError(error, basename(job.path))));
    return thread;
  }

  return {
    advance(front) {
      if (front <= announced || (front < job.size && front - announced < stepBytes)) return;
      announced = front;
      worker ??= start();
      worker.postMessage(front);
    },
    async digests() {
      const result = await outcome;
      if (result instanceof Error) throw result;
      return result;
    },
    async stop() {
      settle(cancelled(basename(job.path)));
      await worker?.terminate();
    },
  };
}

/**
 * Deletes those of these links whose blob is not what it is named for, with the blob, so that they are fetched again. A file that
 * is no link to a blob stays: its digest is not known. Throws `cache_unwritable`, `cancelled`.
 */
export async function dropDamaged(links: readonly string[], signal: AbortSignal): Promise<string[]> {
  const dropped: string[] = [];
  for (const link of links) {
    const blob = await realpath(link).catch(ignoreDangling);
    if (blob === null || basename(dirname(blob)) !== "blobs" || !isDigest(basename(blob))) continue;
    if (isOneOf(await hashFile(blob, signal), basename(blob))) continue;
    await orCacheError(basename(link), async () => {
      await rm(blob);
      await rm(link);
    });
    dropped.push(link);
  }
  return dropped;
}
