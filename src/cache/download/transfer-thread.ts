// A transfer in a thread of its own. This thread hears a few times a second how far it is, and keeps the records.
import { on } from "node:events";
import { Worker } from "node:worker_threads";
import { GatewayError } from "../../core/errors.ts";
import type { HubHttpOptions, Reachability } from "../../hub/http.ts";
import type { Extents } from "./extents.ts";
import type { Target } from "./fetch.ts";
import { type Transfer, transfer } from "./transfer.ts";

/** What the thread gets when it starts; afterwards it gets one message of any kind, to stop. */
export interface TransferJob extends Pick<Transfer, "repo" | "commit" | "file" | "tuning" | "isPlain"> {
  readonly hub: HubHttpOptions;
  /** Open as long as the thread runs. */
  readonly fd: number;
  readonly written: Extents;
}

export interface TransferReport {
  /** All that is there now. */
  readonly written: Extents;
  /** New bytes since the report before. */
  readonly received: number;
  readonly reachability: Reachability;
  /** The last report has it, unless all is there. */
  readonly failure?: Pick<GatewayError, "code" | "message"> & { readonly retryAfterMs?: number };
}

type Order = Omit<Transfer, "write" | "partial"> & Target;

/** Up to here a file is transferred in this thread: that takes two milliseconds, a thread's start some eighty. */
const smallBytes = 1024 * 1024;

/** Throws as {@link transfer}, and what `note` of the target throws. */
export async function transferAside({ client, signal, partial, note, ...order }: Order): Promise<void> {
  if (order.file.size <= smallBytes) return transfer({ ...order, client, signal, partial });
  const { repo, commit, file, tuning, isPlain } = order;
  const job = { hub: client.options, fd: partial.fd, written: partial.extents() };
  const worker = new Worker(new URL("./transfer-worker.js", import.meta.url), {
    workerData: { ...job, repo, commit, file, tuning, isPlain } satisfies TransferJob,
    name: "transfer",
  });
  const stop = (): void => worker.postMessage("stop");
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  let failure: TransferReport["failure"];
  try {
    const reports = on(worker, "message", { close: ["exit"] }) as AsyncIterable<[TransferReport]>;
    for await (const [report] of reports) {
      client.noteReachability(report.reachability);
      failure = report.failure;
      await note(report.written, report.received);
    }
  } finally {
    signal.removeEventListener("abort", stop);
    // Before the file is closed: its number may be another's then.
    await worker.terminate();
  }
  if (failure) throw new GatewayError(failure.code, failure.message, failure);
}
