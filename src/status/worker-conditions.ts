// What is true of the RPC workers: of each, and of all together. Pure.
import { foldWorker } from "../core/worker-address.ts";
import type { Desired } from "../desired/document/document.ts";
import { loadedModels, type Observed, type WorkerSnapshot } from "../plan/observed.ts";
import { presetEndpoints, wantedWorkers, workersByAddress } from "../plan/workers.ts";
import { type Finding, finding } from "./finding.ts";

/** Reachable and InUse of one worker; `usedBy` is the model whose process is connected to it. */
export function workerFindings(
  worker: WorkerSnapshot | undefined,
  usedBy: string | null,
  isWaiting: boolean,
): Finding[] {
  const inUse =
    usedBy !== null
      ? finding("InUse", "True", "ServesModel", `${usedBy} uses it`)
      : isWaiting
        ? finding("InUse", "False", "AnswersFirst", "it has come back, and is used once no answer is under way")
        : finding("InUse", "False", "Idle", "no model uses it");
  if (!worker || worker.verdict === "unprobed")
    return [finding("Reachable", "Unknown", "NotProbed", "it was not looked at yet"), inUse];
  return [finding("Reachable", worker.verdict === "up" ? "True" : "False", worker.reason, worker.message), inUse];
}

type Seen = Pick<Observed, "workers"> & { readonly router: Pick<Observed["router"], "models" | "loadedPreset"> };

/** Addresses of workers that have come back and wait until no answer is under way. */
export function waitingWorkers(desired: Pick<Desired, "rpc">, { workers, router }: Seen): readonly string[] {
  if (workers.state === "unknown") return [];
  return wantedWorkers(desired, workers.value, presetEndpoints(router.loadedPreset ?? "")).waiting;
}

/** Whether RPC mode has the workers that it needs. */
export function workersReady(desired: Pick<Desired, "rpc">, observed: Seen): Finding {
  const type = "WorkersReady";
  const { mode, workers: named, minWorkers } = desired.rpc;
  const { workers, router } = observed;
  if (mode === "single") return finding(type, "True", "NotUsed", "models run on this machine alone");
  if (workers.state === "unknown") return finding(type, "Unknown", "NotObserved", workers.why);
  const { up, unprobed, waiting } = wantedWorkers(desired, workers.value, presetEndpoints(router.loadedPreset ?? ""));
  const byAddress = workersByAddress(workers.value.workers);
  const away = named.filter((address) => byAddress.get(foldWorker(address))?.verdict === "down");
  if (up + unprobed < minWorkers) {
    const loaded = router.models.state === "known" ? loadedModels(router.models.value) : [];
    const effect = loaded.length === 0 ? "no model is loaded" : `none is loaded anew; ${loaded.join(", ")} goes on`;
    const remedy =
      named.length < minWorkers ? `the document names only ${named.length}` : `missing: ${away.join(", ") || "none"}`;
    return finding(
      type,
      "False",
      "TooFewWorkers",
      `${up} of ${named.length} workers can be used and the document asks for ${minWorkers}: ${effect}; ${remedy}`,
    );
  }
  if (unprobed > 0) return finding(type, "Unknown", "NotProbed", "the workers are being looked at");
  if (away.length === 0) {
    const later = waiting.length > 0 ? `; ${waiting.join(", ")} once no answer is under way` : "";
    return finding(type, "True", "AllReachable", `${up} workers can be used${later}`);
  }
  const rest = up === 0 ? "models run on this machine alone" : `models run with the other ${up}`;
  return finding(type, "False", "WorkersMissing", `${away.join(", ")} cannot be used; ${rest}`);
}

/** What everybody who turns RPC mode on should know. */
export const rpcWarning =
  "RPC workers speak a protocol without password or encryption: whoever reaches their port can use them and read along. Keep them in a network that you trust.";
