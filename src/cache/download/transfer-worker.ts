// A thread that transfers one file: at 700 MB/s each turn of the gateway's own loop took half a millisecond longer, and some took five.
// Writes in place, one write after the other: what the system's cache takes costs no more than handing it to another thread,
// and it is done at this thread's priority.
import { writevSync } from "node:fs";
import { parentPort, workerData } from "node:worker_threads";
import { toGatewayError } from "../../core/errors.ts";
import { createHubClient } from "../../hub/client.ts";
import { orCacheError } from "../../hub/errors.ts";
import { clipped, type Extents, withExtent } from "./extents.ts";
import { lowerPriority } from "./low-priority.ts";
import { transfer } from "./transfer.ts";
import type { TransferJob, TransferReport } from "./transfer-thread.ts";

const reportMs = 100;

async function run({ hub, fd, ...job }: TransferJob): Promise<void> {
  const client = createHubClient(hub);
  const stop = new AbortController();
  parentPort?.on("message", () => stop.abort());
  let written: Extents = job.written;
  let received = 0;
  let reachability = client.reachability();

  function report(end: Pick<TransferReport, "failure"> = {}): void {
    reachability = client.reachability();
    parentPort?.postMessage({ written, received, reachability, ...end } satisfies TransferReport);
    received = 0;
  }

  const timer = setInterval(() => {
    if (received > 0 || reachability !== client.reachability()) report();
  }, reportMs);
  try {
    await transfer({
      ...job,
      client,
      signal: stop.signal,
      partial: {
        extents: () => written,
        forgetFrom: (position) => {
          written = clipped(written, position);
        },
      },
      write: (position, buffers) =>
        orCacheError(job.file.path, async () => {
          const end = writeAll(fd, position, buffers);
          written = withExtent(written, position, end);
          received += end - position;
        }),
    });
    report();
  } catch (error) {
    const { code, message, retryAfterMs } = toGatewayError(error);
    report({ failure: { code, message, ...(retryAfterMs !== undefined && { retryAfterMs }) } });
  }
  clearInterval(timer);
  await client.close();
  parentPort?.close();
}

/** A disk that is almost full takes a part, and then fails. Returns the position behind the last byte. */
function writeAll(fd: number, position: number, buffers: readonly Buffer[]): number {
  const total = buffers.reduce((sum, { length }) => sum + length, 0);
  const bytes = writevSync(fd, buffers, position);
  if (bytes < total) return writeAll(fd, position + bytes, [Buffer.concat(buffers).subarray(bytes)]);
  return position + total;
}

lowerPriority();
// oxlint-disable-next-line typescript/no-unsafe-argument -- transfer-thread.ts is the only one that starts this thread
await run(workerData);
