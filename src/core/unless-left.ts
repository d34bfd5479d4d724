// Work that several callers may wait for, each of whom may leave: its wait rejects with `cancelled`.
import { clientLeftError } from "./errors.ts";

/** The outcome of the work, or `cancelled` at once when the signal aborts; a later outcome is ignored. */
export async function unlessLeft<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  let leave = (): void => undefined;
  const gone = new Promise<never>((_resolve, reject) => {
    leave = () => reject(clientLeftError());
  });
  signal.addEventListener("abort", leave, { once: true });
  if (signal.aborted) leave();
  try {
    return await Promise.race([work, gone]);
  } finally {
    signal.removeEventListener("abort", leave);
  }
}

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
