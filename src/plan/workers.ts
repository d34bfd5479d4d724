// The RPC workers as they were found, and which of them the preset should name. Pure.
import { foldWorker } from "../core/worker-address.ts";
import type { Desired } from "../desired/document.ts";
import type { RouterModel, WorkerSnapshot } from "./observed.ts";
import { effectiveValues, parsePreset } from "./preset-file.ts";

export interface WantedWorkers {
  /** For the preset, in the document's order; those that nobody has looked at yet are among them. */
  readonly endpoints: readonly string[];
  /** How many of them are known to answer. */
  readonly up: number;
  /** How many were not looked at yet: what the preset should name is not known for certain. */
  readonly unprobed: number;
}

/** What RPC mode should use; nothing in single mode. */
export function wantedWorkers({ rpc }: Pick<Desired, "rpc">, seen: readonly WorkerSnapshot[]): WantedWorkers {
  const byAddress = new Map(seen.map((worker) => [foldWorker(worker.address), worker]));
  const endpoints = new Set<string>();
  let up = 0;
  let waiting = 0;
  for (const address of rpc.mode === "rpc" ? rpc.workers : []) {
    const worker = byAddress.get(foldWorker(address));
    if (worker?.verdict === "down") continue;
    if (worker?.verdict === "up") up++;
    else waiting++;
    endpoints.add(worker?.endpoint ?? address);
  }
  return { endpoints: [...endpoints], up, unprobed: waiting };
}

/** The endpoints with which the router would start, or has started, a model. */
export function endpointsOf({ args }: Pick<RouterModel, "args">): string[] {
  const at = args.indexOf("--rpc");
  return at < 0 ? [] : endpointList(args[at + 1] ?? "");
}

/** The endpoints that a preset gives to every model. */
export function presetEndpoints(text: string): string[] {
  return endpointList(effectiveValues(parsePreset(text), "*").get("rpc") ?? "");
}

function endpointList(text: string): string[] {
  return text
    .split(",")
    .map((endpoint) => endpoint.trim())
    .filter((endpoint) => endpoint !== "");
}
