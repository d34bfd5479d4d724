// What is true of the RPC workers: of each, and of all together. Pure.
import { foldWorker } from "../core/worker-address.ts";
import type { Desired } from "../desired/document/document.ts";
import { loadedModels, type Observed, type WorkerSnapshot } from "../plan/observed.ts";
import { wantedWorkers, workersByAddress } from "../plan/workers.ts";
import { type Finding, finding, reported } from "./finding.ts";

/** Reachable and InUse of one worker; `usedBy` is the model whose process is connected to it. */
export function workerFindings(worker: WorkerSnapshot | undefined, usedBy: string | null): Finding[] {
  const inUse = usedBy === null ? finding("InUse", "Idle") : finding("InUse", "ServesModel", `${usedBy} uses it.`);
  if (!worker || worker.verdict === "unprobed") return [finding("Reachable", "NotProbed"), inUse];
  return [reported("Reachable", worker.verdict === "up" ? "True" : "False", worker.reason, worker.message), inUse];
}

/** Whether RPC mode has the workers that it needs. */
export function workersReady(
  desired: Pick<Desired, "rpc">,
  { workers, router }: Pick<Observed, "workers"> & { readonly router: Pick<Observed["router"], "models"> },
): Finding {
  const { mode, workers: named, minWorkers } = desired.rpc;
  if (mode === "single") return finding("WorkersReady", "NotUsed");
  const { up, unprobed } = wantedWorkers(desired, workers);
  const byAddress = workersByAddress(workers);
  const away = named.filter((address) => byAddress.get(foldWorker(address))?.verdict === "down");
  if (up + unprobed < minWorkers) {
    const loaded = router.models.state === "known" ? loadedModels(router.models.value) : [];
    const effect = loaded.length === 0 ? "no model is loaded" : `no other model than ${loaded.join(", ")} is loaded`;
    const lacking =
      named.length < minWorkers ? `the document names only ${named.length}` : `missing: ${away.join(", ") || "none"}`;
    return finding(
      "WorkersReady",
      "TooFewWorkers",
      `${up} of ${named.length} workers can be used and the document asks for ${minWorkers}: ${effect}; ${lacking}.`,
    );
  }
  if (unprobed > 0) return finding("WorkersReady", "NotProbed");
  if (away.length === 0)
    return finding("WorkersReady", "AllReachable", `${up} of ${named.length} workers can be used.`);
  const rest = up === 0 ? "models run on this machine alone" : `models run with the other ${up}`;
  return finding("WorkersReady", "WorkersMissing", `${away.join(", ")} cannot be used; ${rest}.`);
}

/** Shown wherever RPC mode is turned on. */
export const rpcWarning =
  "RPC workers speak a protocol without password or encryption: anyone who reaches their port can use them and read along. Keep them in a network that you trust.";
