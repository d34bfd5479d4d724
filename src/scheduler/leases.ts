// The answers under way, by model: who counts as using a model, since when not, and whose answer a change has cut.
import { GatewayError } from "../core/errors.ts";
import type { Instance } from "../engines/llama/instances.ts";

export interface Lease {
  readonly instance: Instance;
  /** Why its answer is cut: a drain waited for it in vain, and the model is ended under it. Null: it is not. */
  overdue(): GatewayError | null;
  release(): void;
}

export interface UseListener {
  begun(instance: Instance): void;
  over(id: string): void;
}

export interface Leases {
  give(instance: Instance): Lease;
  /** Answers under way, by model. */
  counts(): ReadonlyMap<string, number>;
  /** ms since the epoch; 0 for never. */
  lastUsed(id: string): number;
  /** Told of every lease that begins, and of the models whose last one is over. */
  onUse(listener: UseListener): void;
  /** The models are ended under their answers; how many of each that cuts. */
  cut(models: readonly string[] | "all"): ReadonlyMap<string, number>;
}

interface OpenLease {
  readonly id: string;
  isOverdue: boolean;
}

export function createLeases(options: {
  readonly now: () => number;
  readonly drainMs: number;
  readonly onRelease: () => void;
}): Leases {
  const { now } = options;
  const counts = new Map<string, number>();
  const open = new Set<OpenLease>();
  const lastUsed = new Map<string, number>();
  const listeners: UseListener[] = [];

  return {
    counts: () => counts,
    lastUsed: (id) => lastUsed.get(id) ?? 0,
    onUse: (listener) => void listeners.push(listener),
    give: (instance) => {
      const { id } = instance;
      const letGo = instance.retain();
      counts.set(id, (counts.get(id) ?? 0) + 1);
      lastUsed.set(id, now());
      const entry: OpenLease = { id, isOverdue: false };
      open.add(entry);
      for (const listener of listeners) listener.begun(instance);
      return {
        instance,
        overdue: () => (entry.isOverdue ? overdueError(id, options.drainMs) : null),
        release: () => {
          if (!open.delete(entry)) return;
          letGo();
          lastUsed.set(id, now());
          countDown(counts, id);
          if (!counts.has(id)) for (const listener of listeners) listener.over(id);
          options.onRelease();
        },
      };
    },
    cut: (models) => {
      const cut = new Map<string, number>();
      for (const entry of open) {
        if (models !== "all" && !models.includes(entry.id)) continue;
        entry.isOverdue = true;
        cut.set(entry.id, (cut.get(entry.id) ?? 0) + 1);
      }
      return cut;
    },
  };
}

function overdueError(id: string, drainMs: number): GatewayError {
  return new GatewayError(
    "upstream_failed",
    `${id} was reloaded or unloaded for a change: this answer took longer than the ${drainMs / 1000} s of --drain-timeout`,
  );
}

export function countDown(counts: Map<string, number>, key: string): void {
  const left = (counts.get(key) ?? 1) - 1;
  if (left > 0) counts.set(key, left);
  else counts.delete(key);
}
