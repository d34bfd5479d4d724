// Digests of files: of one that is complete, and of one that is still being written, as far as it is there.
// A large file is hashed in a thread of its own; a small one is not worth starting it.
import { createHash } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import { basename } from "node:path";
import { Worker } from "node:worker_threads";
import { cacheError, cancelled, orCacheError } from "../../hub/errors.ts";

/** What the thread gets when it starts; afterwards it gets each new front, and answers once with the digest. */
export interface HashJob {
  readonly path: string;
  readonly size: number;
  /** git's sha1 of the content; else sha256. */
  readonly isGit: boolean;
}

/** Hashes a file while it is written. */
export interface Follower {
  /** The file is there, and final, up to `front`. */
  advance(front: number): void;
  /** Lower-case hex, once all of it is there. Throws `cache_unwritable` if it cannot be read, `cancelled` when stopped before. */
  digest(): Promise<string>;
}

/** Up to here a file is hashed in one go in this thread: that takes a millisecond, a thread's start some twenty. */
const smallBytes = 1024 * 1024;
/** The thread is notified after so many new bytes. */
const stepBytes = 8 * 1024 * 1024;

/** A blob is named by its sha256, or by git's sha1 outside LFS. */
export function isGitDigest(digest: string): boolean {
  return digest.length === 40;
}

/** Whether a complete file has the digest that its name promises. Throws `cache_unwritable` if it cannot be read, `cancelled`. */
export async function hasDigest(path: string, digest: string, signal: AbortSignal): Promise<boolean> {
  return (await hashFile(path, isGitDigest(digest), signal)) === digest;
}

/** Hashes a complete file. Throws as {@link hasDigest}. */
export async function hashFile(path: string, isGit: boolean, signal: AbortSignal): Promise<string> {
  const { size } = await orCacheError(basename(path), () => stat(path));
  return following({ path, size, isGit }, signal, (follower) => {
    follower.advance(size);
    return follower.digest();
  });
}

/** Runs `work` with a follower of the file, which ends with it or when the signal aborts. The file must exist at the first advance. */
export async function following<T>(
  job: HashJob,
  signal: AbortSignal,
  work: (follower: Follower) => Promise<T>,
): Promise<T> {
  const name = basename(job.path);
  if (signal.aborted) throw cancelled(name);
  const isSmall = job.size <= smallBytes;
  let worker: Worker | undefined;
  let announced = 0;
  let settle: (outcome: string | Error) => void = () => undefined;
  const outcome = new Promise<string | Error>((resolve) => {
    settle = resolve;
  });

  function start(): Worker {
    const thread = new Worker(new URL("./hash-worker.js", import.meta.url), { workerData: job, name: "hash" });
    thread.on("message", settle);
    thread.on("error", (error) => settle(cacheError(error, name)));
    return thread;
  }

  const follower: Follower = {
    advance(front) {
      if (isSmall || front <= announced || (front < job.size && front - announced < stepBytes)) return;
      announced = front;
      worker ??= start();
      worker.postMessage(front);
    },
    async digest() {
      const result = isSmall ? await orCacheError(name, () => hashSmall(job)) : await outcome;
      if (result instanceof Error) throw result;
      return result;
    },
  };
  const cancel = () => settle(cancelled(name));
  signal.addEventListener("abort", cancel);
  try {
    return await work(follower);
  } finally {
    signal.removeEventListener("abort", cancel);
    await worker?.terminate();
  }
}

async function hashSmall({ path, isGit }: HashJob): Promise<string> {
  const bytes = await readFile(path);
  const hash = isGit ? createHash("sha1").update(`blob ${bytes.length}\0`) : createHash("sha256");
  return hash.update(bytes).digest("hex");
}
