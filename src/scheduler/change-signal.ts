// Waiting for something to change, without knowing what: whoever changes something pokes, whoever waits looks again.

export interface Changes {
  poke(): void;
  /** Resolves at the next poke, when the signal aborts, or after a while. */
  next(signal?: AbortSignal, withinMs?: number): Promise<void>;
}

/** Pokes are the rule; this is for the event that got lost. */
const lookAgainMs = 250;

export function createChanges(): Changes {
  const waiters = new Set<() => void>();
  return {
    poke: () => {
      const woken = [...waiters];
      waiters.clear();
      for (const wake of woken) wake();
    },
    next: (signal, withinMs = lookAgainMs) =>
      new Promise((resolve) => {
        const done = (): void => {
          clearTimeout(timer);
          waiters.delete(done);
          signal?.removeEventListener("abort", done);
          resolve();
        };
        const timer = setTimeout(done, withinMs);
        waiters.add(done);
        signal?.addEventListener("abort", done, { once: true });
      }),
  };
}

/** Waits for work that goes on without the waiter: one that leaves just stops waiting. */
export async function settledOrLeft(work: Promise<void>, signal: AbortSignal): Promise<void> {
  const over = new AbortController();
  const gone = new Promise<void>((resolve) => {
    signal.addEventListener("abort", () => resolve(), { once: true, signal: over.signal });
  });
  try {
    await Promise.race([work, gone]);
  } finally {
    over.abort();
  }
}
