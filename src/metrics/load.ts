// How busy a gateway is, as totals over all models: what endpoint pickers, balancers and autoscalers compare gateways by. Pure.
import type { StatusReport } from "../status/report.ts";

/** What is loaded now, and what can be. */
export interface LoadedModels {
  readonly models: readonly {
    readonly id: string;
    /** Requests that its process computes at once. */
    readonly slots: number;
    readonly isPinned: boolean;
  }[];
  /** Models loaded at once. */
  readonly modelSlots: number;
}

export interface Load extends LoadedModels {
  /** Requests that wait for a model, or for a parallel slot of its process. */
  readonly queued: number;
  /** Requests that a process computes. */
  readonly running: number;
  /** Share of the loaded models' parallel slots that are in use, 0 to 1. */
  readonly busyRatio: number;
  /** Models that requests wait for and that are not loaded. */
  readonly waitingModels: readonly string[];
}

export function loadOf({ inFlight, waiting }: Pick<StatusReport, "inFlight" | "waiting">, loaded: LoadedModels): Load {
  const slotsOf = new Map(loaded.models.map(({ id, slots }) => [id, slots]));
  let [queued, running] = [sum(waiting.map(({ requests }) => requests)), 0];
  for (const [model, requests] of Object.entries(inFlight)) {
    // What a process has more than slots waits inside it. One that is no longer listed still computes its last responses.
    const computed = Math.min(requests, slotsOf.get(model) ?? requests);
    running += computed;
    queued += requests - computed;
  }
  const slots = sum([...slotsOf.values()]);
  return {
    ...loaded,
    queued,
    running,
    busyRatio: running === 0 ? 0 : Math.min(1, running / slots),
    waitingModels: [...new Set(waiting.map(({ model }) => model))].filter((model) => !slotsOf.has(model)),
  };
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
