// Remembers how many bytes each transfer still needs, so that the planner knows before it starts one. From what a try told
// of itself: its progress, or that the disk was too full for it. Forgets nothing by itself but what is done.
import type { GatewayError } from "../core/errors.ts";
import type { Action, RunningAction } from "../plan/actions.ts";
import { type Needs, sizeKey } from "../plan/room.ts";

export interface SizeBook {
  settled(action: Action, error: GatewayError | null): void;
  /** What is known now, with these at it. */
  needs(running: readonly RunningAction[]): Needs;
  /** Somebody asked: what was too large may be smaller by now. */
  forget(): void;
}

export function createSizeBook(): SizeBook {
  const known = new Map<string, number>();
  return {
    settled: (action, error) => {
      if (error?.neededBytes !== undefined) known.set(sizeKey(action), error.neededBytes);
      // What it left to do is known again once it is tried.
      else if (error?.code !== "disk_full") known.delete(sizeKey(action));
    },
    needs: (running) => {
      const started = running.filter(({ startedAt }) => startedAt !== null);
      const now = started.flatMap(({ action, progress }): [string, number][] =>
        progress && progress.total > 0 ? [[sizeKey(action), Math.max(0, progress.total - progress.completed)]] : [],
      );
      return { bytes: new Map([...known, ...now]), underWay: new Set(started.map(({ action }) => action.key)) };
    },
    forget: () => known.clear(),
  };
}
