// Counters of what the controllers do: actions, loads and unloads, starts of the router, bytes of pulls. Pure.
import type { Outcome } from "../execute/executor.ts";
import { type Action, type ActionKind, actionKinds, type Progress } from "../plan/actions.ts";
import { isConverged, type Pass } from "../reconcile/loop.ts";
import { actionBounds } from "./families.ts";
import { Histogram } from "./histogram.ts";

export interface ActionMeter {
  succeeded: number;
  failed: number;
  cancelled: number;
  readonly duration: Histogram;
}

export interface LoadMeter {
  succeeded: number;
  failed: number;
  unloads: number;
}

export type WorkMeters = ReturnType<typeof createWorkMeters>;

export function createWorkMeters() {
  const actions = new Map<ActionKind, ActionMeter>(
    actionKinds.map((kind) => [kind, { succeeded: 0, failed: 0, cancelled: 0, duration: new Histogram(actionBounds) }]),
  );
  const loads = new Map<string, LoadMeter>();
  /** Bytes that a pull has reported last, by key. */
  const pulled = new Map<string, number>();
  /** The address of each model's process. */
  let processes: ReadonlyMap<string, string> = new Map();
  const totals = { pullBytes: 0, routerStarts: 0, lastSuccessAt: 0, driftMended: 0 };

  function loadsOf(model: string): LoadMeter {
    let meter = loads.get(model);
    if (!meter) loads.set(model, (meter = { succeeded: 0, failed: 0, unloads: 0 }));
    return meter;
  }

  return {
    actions: (): ReadonlyMap<ActionKind, ActionMeter> => actions,
    /** By model id. */
    loads: (): ReadonlyMap<string, LoadMeter> => loads,
    totals: (): Readonly<typeof totals> => totals,
    /** `at`: ms since the epoch. */
    passed: (pass: Pass, at: number): void => {
      if (isConverged(pass)) totals.lastSuccessAt = at;
    },
    driftMended: (): void => void totals.driftMended++,
    settled: ({ action, ms, error }: Outcome): void => {
      pulled.delete(action.key);
      const meter = actions.get(action.kind);
      if (!meter) return;
      if (error) {
        meter[error.code === "cancelled" || error.code === "shutting_down" ? "cancelled" : "failed"]++;
        return;
      }
      meter.succeeded++;
      meter.duration.observe(ms / 1000);
      if (action.kind === "router.start" || action.kind === "router.restart") totals.routerStarts++;
    },
    /** Of a pull that is resumed the first report has what was there before. */
    progressed: ({ kind, key }: Action, { phase, completed }: Progress): void => {
      if (!kind.endsWith(".pull") || phase !== "downloading") return;
      totals.pullBytes += Math.max(0, completed - (pulled.get(key) ?? completed));
      pulled.set(key, completed);
    },
    /** The processes as they are now, by model id; another address is another process. */
    listed: (now: ReadonlyMap<string, string>): void => {
      for (const [model, origin] of processes) if (now.get(model) !== origin) loadsOf(model).unloads++;
      for (const [model, origin] of now) if (processes.get(model) !== origin) loadsOf(model).succeeded++;
      processes = now;
    },
    loadFailed: (model: string): void => void loadsOf(model).failed++,
    /** Drops the series of models that are gone. */
    keep: (ids: ReadonlySet<string>): void => {
      for (const id of loads.keys()) if (!ids.has(id)) loads.delete(id);
    },
  };
}
