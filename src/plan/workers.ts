// The observed RPC workers, and which of them the preset should name. Pure.
import { foldWorker } from "../core/worker-address.ts";
import type { Desired } from "../desired/document/document.ts";
import { optionOf, type RouterModel, type WorkerSnapshot, type WorkersSnapshot } from "./observed.ts";
import { effectiveValues, parsePreset } from "./preset-file.ts";

export interface WantedWorkers {
  /** For the preset, in the document's order; with those that were not probed yet. */
  readonly endpoints: readonly string[];
  /** How many of them responded. */
  readonly up: number;
  /** How many were not probed yet: the preset is not certain. */
  readonly unprobed: number;
  /** Addresses of workers that came back and are left out until no response is in flight: adding them would cut it. */
  readonly waiting: readonly string[];
}

/** What RPC mode should use; nothing in single mode. `inForce`: the endpoints that the router has now. */
export function wantedWorkers(
  { rpc }: Pick<Desired, "rpc">,
  { workers, answering }: Pick<WorkersSnapshot, "workers" | "answering">,
  inForce: readonly string[],
): WantedWorkers {
  const byAddress = workersByAddress(workers);
  const endpoints = new Set<string>();
  const up = new Set<string>();
  const waiting: string[] = [];
  let unprobed = 0;
  for (const address of rpc.mode === "rpc" ? rpc.workers : []) {
    const worker = byAddress.get(foldWorker(address));
    if (worker?.verdict === "down") continue;
    const endpoint = worker?.endpoint ?? address;
    if (worker?.verdict === "up") up.add(endpoint);
    else unprobed++;
    if (answering && worker?.returned && !inForce.includes(endpoint)) waiting.push(address);
    else endpoints.add(endpoint);
  }
  return { endpoints: [...endpoints], up: up.size, unprobed, waiting };
}

/** By the folded address. */
export function workersByAddress(workers: readonly WorkerSnapshot[]): ReadonlyMap<string, WorkerSnapshot> {
  return new Map(workers.map((worker) => [foldWorker(worker.address), worker]));
}

/** Whether two presets differ only in workers that came back by themselves: that is no reason to cut a response. */
export function onlyTakesBack(before: string, after: string, workers: readonly WorkerSnapshot[]): boolean {
  const [had, has] = [presetEndpoints(before), presetEndpoints(after)];
  const back = new Set(workers.filter(({ returned }) => returned).map(({ endpoint }) => endpoint));
  const added = has.filter((endpoint) => !had.includes(endpoint));
  return (
    added.length > 0 &&
    had.every((endpoint) => has.includes(endpoint)) &&
    added.every((endpoint) => back.has(endpoint)) &&
    withoutEndpoints(before) === withoutEndpoints(after)
  );
}

function withoutEndpoints(text: string): string {
  return text.replaceAll(/^\s*(?:rpc|LLAMA_ARG_RPC)\s*=.*\n?/gm, "");
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
