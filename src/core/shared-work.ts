// One flight for many: concurrent callers share one run of the same work.
import { unlessLeft } from "./unless-left.ts";

/** Calls during the work share its outcome. With the last one that leaves its signal aborts, and later calls start it again. */
export function createSharedWork<T>(work: (signal: AbortSignal) => Promise<T>): (signal: AbortSignal) => Promise<T> {
  let current: { users: number; readonly over: AbortController; readonly outcome: Promise<T> } | null = null;
  return async (signal) => {
    if (!current) {
      const over = new AbortController();
      current = { users: 0, over, outcome: work(over.signal) };
    }
    const turn = current;
    turn.users++;
    try {
      return await unlessLeft(turn.outcome, signal);
    } finally {
      turn.users--;
      if (turn.users === 0) {
        if (current === turn) current = null;
        turn.over.abort();
      }
    }
  };
}
