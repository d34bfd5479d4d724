// Lets a few of many callers go on at once; the others wait their turn, and beyond that are refused.

export type Turns = <T>(task: () => Promise<T>, signal: AbortSignal) => Promise<T>;

/** Whoever leaves while waiting is rejected with the signal's reason, and takes up no turn. */
export function createTurns(options: {
  readonly atOnce: number;
  readonly waiting: number;
  readonly refusal: () => Error;
}): Turns {
  const queue: (() => void)[] = [];
  let running = 0;

  function pass(): void {
    const next = queue.shift();
    if (next) next();
    else running--;
  }

  /** Resolves holding the turn of somebody who has ended. */
  function turn(signal: AbortSignal): Promise<void> {
    return new Promise((resolve, reject) => {
      const begin = (): void => {
        signal.removeEventListener("abort", leave);
        resolve();
      };
      const leave = (): void => {
        queue.splice(queue.indexOf(begin), 1);
        reject(signal.reason as Error);
      };
      queue.push(begin);
      signal.addEventListener("abort", leave, { once: true });
    });
  }

  return async (task, signal) => {
    if (signal.aborted) throw signal.reason;
    if (running < options.atOnce) running++;
    else if (queue.length < options.waiting) await turn(signal);
    else throw options.refusal();
    try {
      return await task();
    } finally {
      pass();
    }
  };
}
