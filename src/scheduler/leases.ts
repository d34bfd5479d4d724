// The answers in flight: each holds its model's process, and learns when a change has cut it.
import { GatewayError } from "../core/errors.ts";
import type { Instance } from "../engines/llama/instances.ts";

export interface Lease {
  readonly instance: Instance;
  /** Why its answer is cut: a drain ended before it, and its model with the drain. Null: it is not. */
  overdue(): GatewayError | null;
  /** Safe to call twice. */
  release(): void;
}

export interface Leases {
  give(instance: Instance): Lease;
  cut(id: string): void;
}

interface OpenLease extends Lease {
  isOverdue: boolean;
}

export function createLeases(drainMs: number, onRelease: (id: string) => void): Leases {
  const open = new Set<OpenLease>();

  return {
    give: (instance) => {
      const end = instance.retain();
      const lease: OpenLease = {
        instance,
        isOverdue: false,
        overdue: () => (lease.isOverdue ? overdueError(instance.id, drainMs) : null),
        release: () => {
          if (!open.delete(lease)) return;
          end();
          onRelease(instance.id);
        },
      };
      open.add(lease);
      return lease;
    },
    cut: (id) => {
      for (const lease of open) if (lease.instance.id === id) lease.isOverdue = true;
    },
  };
}

function overdueError(id: string, drainMs: number): GatewayError {
  return new GatewayError(
    "upstream_failed",
    `${id} was reloaded or unloaded for a change: this answer took longer than the ${drainMs / 1000} s of --drain-timeout`,
  );
}
