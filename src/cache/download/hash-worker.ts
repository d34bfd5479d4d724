// A thread that hashes a file as far as it is there: the gateway's own thread serves requests. Reads by itself, mostly from the
// page cache, so that no bytes have to be handed over.
import { createHash } from "node:crypto";
import { closeSync, openSync, readSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import type { HashJob } from "./hash.ts";
import { lowerPriority } from "./low-priority.ts";

/** Few: other threads wait, as the kernel leaves no read before its end. */
const readBytes = 64 * 1024;

function start({ path, size, isGit }: HashJob): void {
  const file = openSync(path, "r");
  const hash = isGit ? createHash("sha1").update(`blob ${size}\0`) : createHash("sha256");
  const buffer = Buffer.allocUnsafe(readBytes);
  let at = 0;

  parentPort?.on("message", (front: number) => {
    while (at < front) {
      const read = readSync(file, buffer, 0, Math.min(readBytes, front - at), at);
      if (read === 0) throw new Error(`the file ends at ${at} instead of ${front}`);
      hash.update(buffer.subarray(0, read));
      at += read;
    }
    if (at < size) return;
    closeSync(file);
    parentPort?.postMessage(hash.digest("hex"));
    parentPort?.close();
  });
}

lowerPriority();
// oxlint-disable-next-line typescript/no-unsafe-argument -- hash.ts is the only one that starts this thread
start(workerData);
