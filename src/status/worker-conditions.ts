// What is true of the RPC workers: of each, and of all together. Pure.
import { foldWorker } from "../core/worker-address.ts";
import type { Desired } from "../desired/document.ts";
import type { Knowable, WorkerSnapshot, WorkersSnapshot } from "../plan/observed.ts";
import { wantedWorkers } from "../plan/workers.ts";
import { type Finding, finding } from "./finding.ts";

/** Reachable and InUse of one worker; `usedBy` is the model whose process is connected to it. */
export function workerFindings(worker: WorkerSnapshot | undefined, usedBy: string | null): Finding[] {
  const inUse =
    usedBy === null
      ? finding("InUse", "False", "Idle", "no model uses it")
      : finding("InUse", "True", "ServesModel", `${usedBy} uses it`);
  if (!worker || worker.verdict === "unprobed")
    return [finding("Reachable", "Unknown", "NotProbed", "it was not looked at yet"), inUse];
  return [finding("Reachable", worker.verdict === "up" ? "True" : "False", worker.reason, worker.message), inUse];
}

/** Whether RPC mode has the workers that it needs. */
export function workersReady(desired: Pick<Desired, "rpc">, workers: Knowable<WorkersSnapshot>): Finding {
  const type = "WorkersReady";
  const { mode, workers: named, minWorkers } = desired.rpc;
  if (mode === "single") return finding(type, "True", "NotUsed", "models run on this machine alone");
  if (workers.state === "unknown") return finding(type, "Unknown", "NotObserved", workers.why);
  const { up, unprobed } = wantedWorkers(desired, workers.value.workers);
  const away = named.filter((address) => {
    const worker = workers.value.workers.find((entry) => foldWorker(entry.address) === foldWorker(address));
    return worker?.verdict === "down";
  });
  if (up + unprobed < minWorkers) {
    return finding(
      type,
      "False",
      "TooFewWorkers",
      `${up} of ${named.length} workers can be used and the document asks for ${minWorkers}: no model is loaded. Missing: ${away.join(", ") || "name more of them"}`,
    );
  }
  if (unprobed > 0) return finding(type, "Unknown", "NotProbed", "the workers are being looked at");
  if (away.length === 0) return finding(type, "True", "AllReachable", `${up} workers can be used`);
  const rest = up === 0 ? "models run on this machine alone" : `models run with the other ${up}`;
  return finding(type, "False", "WorkersMissing", `${away.join(", ")} cannot be used; ${rest}`);
}

/** What everybody who turns RPC mode on should know. */
export const rpcWarning =
  "RPC workers speak a protocol without password or encryption: whoever reaches their port can use them and read along. Keep them in a network that you trust.";
