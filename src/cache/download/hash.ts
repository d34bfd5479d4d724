// Digests of files: of one that lies there, and of one that is still being written, as far as it is there.
// A large file is hashed in a thread of its own; a small one is not worth starting it.
import { createHash } from "node:crypto";
import { open, stat } from "node:fs/promises";
import { basename } from "node:path";
import { Worker } from "node:worker_threads";
import { cacheError, cancelled } from "../../hub/errors.ts";
import { blobName, type HubFile } from "../layout/select.ts";

export interface Digests {
  /** Lower-case hex. */
  readonly sha256: string;
  /** What git calls the content; empty for a file too large for git. */
  readonly gitSha1: string;
}

export interface HashJob {
  readonly path: string;
  readonly size: number;
  readonly git: boolean;
}

/** Hash up to there. */
export interface HashOrder {
  readonly front: number;
}

export type HashReport = Digests;

/** Hashes a file while it is written. */
export interface Follower {
  /** The file is there, and final, up to `front`. */
  advance(front: number): void;
  /** Once all of it is there. Throws `cache_unwritable` where it cannot be read, `cancelled` when stopped before. */
  digests(): Promise<Digests>;
  /** Ends it, whether or not it is done. */
  stop(): Promise<void>;
}

/** Up to here a file is hashed in one go in this thread: that takes a millisecond, a thread's start some twenty. */
const smallBytes = 1024 * 1024;
/** How much new there must be for the thread to be told. */
const stepBytes = 8 * 1024 * 1024;
/** The hub takes no file above 10 MB outside LFS: hashing the large ones twice would be for nothing. */
const gitLimit = 64 * 1024 * 1024;

/** Whether digests are those that the hub announced for a file. */
export function digestsMatch(file: HubFile, digests: Digests): boolean {
  return blobName(file) === (file.sha256 === undefined ? digests.gitSha1 : digests.sha256);
}

/** Hashes a file on disk. Throws `cache_unwritable` where it cannot be read, `cancelled`. */
export async function hashFile(path: string, signal?: AbortSignal): Promise<Digests> {
  const size = await stat(path).then(
    (entry) => entry.size,
    (error: unknown) => {
      throw cacheError(error, basename(path));
    },
  );
  if (signal?.aborted) throw cancelled(basename(path));
  const follower = followFile(path, size);
  const stop = () => void follower.stop();
  signal?.addEventListener("abort", stop);
  try {
    follower.advance(size);
    return await follower.digests();
  } finally {
    signal?.removeEventListener("abort", stop);
    await follower.stop();
  }
}

/** The file must be there when it is first told to advance. */
export function followFile(path: string, size: number): Follower {
  const job: HashJob = { path, size, git: size <= gitLimit };
  return size <= smallBytes ? hashSmall(job) : hashInThread(job);
}

function hashSmall({ path, size, git }: HashJob): Follower {
  return {
    advance: () => undefined,
    async digests() {
      try {
        const handle = await open(path, "r");
        try {
          const buffer = Buffer.allocUnsafe(size);
          let at = 0;
          while (at < size) {
            const { bytesRead } = await handle.read(buffer, at, size - at, at);
            if (bytesRead === 0) throw new Error(`the file ends at ${at} instead of ${size}`);
            at += bytesRead;
          }
          const gitSha1 = git ? createHash("sha1").update(`blob ${size}\0`).update(buffer).digest("hex") : "";
          return { sha256: createHash("sha256").update(buffer).digest("hex"), gitSha1 };
        } finally {
          await handle.close();
        }
      } catch (error) {
        throw cacheError(error, basename(path));
      }
    },
    stop: () => Promise.resolve(),
  };
}

function hashInThread(job: HashJob): Follower {
  let worker: Worker | undefined;
  let told = 0;
  let settle: (outcome: Digests | Error) => void = () => undefined;
  const outcome = new Promise<Digests | Error>((resolve) => {
    settle = resolve;
  });

  function start(): Worker {
    const thread = new Worker(new URL("./hash-worker.js", import.meta.url), { workerData: job, name: "hash" });
    thread.on("message", (report: HashReport) => settle(report));
    thread.on("error", (error) => settle(cacheError(error, basename(job.path))));
    thread.on("exit", () => settle(cancelled(basename(job.path))));
    return thread;
  }

  return {
    advance(front) {
      if (front <= told || (front < job.size && front - told < stepBytes)) return;
      told = front;
      worker ??= start();
      const order: HashOrder = { front };
      worker.postMessage(order);
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
