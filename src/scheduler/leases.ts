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

/** A number per lease and not a set of them: V8 would keep what was in the set, see src/http/proxy/rounds.ts. */
export function createLeases(drainMs: number, onRelease: (id: string) => void): Leases {
  /** By model: leases of a lower number are cut. */
  const cutBelow = new Map<string, number>();
  let given = 0;

  return {
    give: (instance) => {
      const end = instance.retain();
      const number = given++;
      let isOpen = true;
      return {
        instance,
        overdue: () => (number < (cutBelow.get(instance.id) ?? 0) ? overdueError(instance.id, drainMs) : null),
        release: () => {
          if (!isOpen) return;
          isOpen = false;
          end();
          onRelease(instance.id);
        },
      };
    },
    cut: (id) => void cutBelow.set(id, given),
  };
}

function overdueError(id: string, drainMs: number): GatewayError {
  return new GatewayError(
    "upstream_failed",
    `${id} was reloaded or unloaded for a change: this answer took longer than the ${drainMs / 1000} s of --drain-timeout`,
  );
}
