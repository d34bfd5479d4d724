// The observed RPC workers, and which of them the preset should name. Pure.
import { foldWorker } from "../core/worker-address.ts";
import type { Desired } from "../desired/document/document.ts";
import { optionOf, type RouterModel, type WorkerSnapshot } from "./observed.ts";
import { effectiveValues, parsePreset } from "./preset-file.ts";

export interface WantedWorkers {
  /** For the preset, in the document's order; with those that were not probed yet. */
  readonly endpoints: readonly string[];
  /** How many of them responded. */
  readonly up: number;
  /** How many were not probed yet: the preset is not certain. */
  readonly unprobed: number;
}

/** What RPC mode should use; nothing in single mode. */
export function wantedWorkers({ rpc }: Pick<Desired, "rpc">, workers: readonly WorkerSnapshot[]): WantedWorkers {
  const byAddress = workersByAddress(workers);
  // Two names may mean one worker.
  const endpoints = new Set<string>();
  const up = new Set<string>();
  let unprobed = 0;
  for (const address of rpc.mode === "rpc" ? rpc.workers : []) {
    const worker = byAddress.get(foldWorker(address));
    if (worker?.verdict === "down") continue;
    const endpoint = worker?.endpoint ?? address;
    if (worker?.verdict === "up") up.add(endpoint);
    else unprobed++;
    endpoints.add(endpoint);
  }
  return { endpoints: [...endpoints], up: up.size, unprobed };
}

/** By the folded address. */
export function workersByAddress(workers: readonly WorkerSnapshot[]): ReadonlyMap<string, WorkerSnapshot> {
  return new Map(workers.map((worker) => [foldWorker(worker.address), worker]));
}

/** The endpoints with which the router would start, or has started, a model. */
export function endpointsOf(model: Pick<RouterModel, "args">): string[] {
  return endpointList(optionOf(model, "--rpc") ?? "");
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
