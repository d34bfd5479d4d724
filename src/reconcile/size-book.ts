// Remembers how many bytes each transfer still needs, so that the planner knows before it starts one. From what a try told
// of itself: its progress, or that the disk was too full for it. Forgets nothing by itself but what is done.
import type { GatewayError } from "../core/errors.ts";
import type { Action, Progress, RunningAction } from "../plan/actions.ts";
import { type Needs, sizeKey } from "../plan/room.ts";

export interface SizeBook {
  progressed(action: Action, progress: Progress): void;
  settled(action: Action, error: GatewayError | null): void;
  /** What is known now, with these at it. */
  needs(running: readonly RunningAction[]): Needs;
  /** Bytes of all that a transfer brings, by its action's key: of those that are not done and ever told. */
  totals(): ReadonlyMap<string, number>;
  /** Somebody asked: what was too large may be smaller by now. */
  forget(): void;
}

export function createSizeBook(): SizeBook {
  const known = new Map<string, number>();
  const totals = new Map<string, number>();
  return {
    progressed: ({ key }, { total }) => {
      if (total > 0) totals.set(key, total);
    },
    settled: (action, error) => {
      if (!error) totals.delete(action.key);
      if (error?.neededBytes !== undefined) known.set(sizeKey(action), error.neededBytes);
      // What it left to do is known again once it is tried.
      else if (error?.code !== "disk_full") known.delete(sizeKey(action));
    },
    needs: (running) => {
      const started = running.filter(({ startedAt }) => startedAt !== null);
      const left = ({ action, progress }: RunningAction): number =>
        progress && progress.total > 0
          ? Math.max(0, progress.total - progress.completed)
          : (known.get(sizeKey(action)) ?? 0);
      return { bytes: known, underWay: new Map(started.map((each) => [each.action.key, left(each)])) };
    },
    totals: () => totals,
    forget: () => known.clear(),
  };
}
