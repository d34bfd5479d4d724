// Work that several ask for at once is done once.
import { unlessLeft } from "./unless-left.ts";

interface Turn<T> {
  users: number;
  readonly over: AbortController;
  readonly outcome: Promise<T>;
}

/**
 * Whoever calls while the work is under way has its outcome too. Each may leave by himself: he gets `cancelled`, and with the
 * last one the work's own signal aborts.
 */
export function createSharedWork<T>(work: (signal: AbortSignal) => Promise<T>): (signal: AbortSignal) => Promise<T> {
  let current: Turn<T> | null = null;

  function begin(): Turn<T> {
    const over = new AbortController();
    const outcome = work(over.signal).finally(() => end(turn));
    const turn = { users: 0, over, outcome };
    return turn;
  }

  /** Who comes now begins anew. */
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
