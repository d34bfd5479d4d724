// One flight for many: concurrent callers share one run of the same work.
import { unlessLeft } from "./unless-left.ts";

interface Turn<T> {
  users: number;
  readonly over: AbortController;
  readonly outcome: Promise<T>;
}

/** A call whose signal aborts rejects with `cancelled`; with the last one the work's own signal aborts. */
export function createSharedWork<T>(work: (signal: AbortSignal) => Promise<T>): (signal: AbortSignal) => Promise<T> {
  let current: Turn<T> | null = null;

  function begin(): Turn<T> {
    const over = new AbortController();
    const outcome = work(over.signal).finally(() => end(turn));
    const turn = { users: 0, over, outcome };
    return turn;
  }

  /** Later calls start the work again. */
  function end(turn: Turn<T>): void {
    if (current === turn) current = null;
  }

  return async (signal) => {
    const turn = (current ??= begin());
    turn.users++;
    try {
      return await unlessLeft(turn.outcome, signal);
    } finally {
      turn.users--;
      if (turn.users === 0) {
        end(turn);
        turn.over.abort();
      }
    }
  };
}
