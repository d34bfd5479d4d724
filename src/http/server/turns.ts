// Lets a few of many callers go on at once; the others wait their turn, and beyond that are refused.
import { createLine } from "../../core/line.ts";

export type Turns = <T>(task: () => Promise<T>, signal: AbortSignal) => Promise<T>;

/** Whoever leaves while waiting is rejected with the signal's reason, and takes up no turn. */
export function createTurns(options: {
  readonly atOnce: number;
  readonly waiting: number;
  readonly refusal: () => Error;
}): Turns {
  const line = createLine({
    width: options.atOnce,
    depth: options.waiting,
    refusal: options.refusal,
    gone: (signal) => signal.reason as Error,
  });
  return async (task, signal) => {
    const over = await line.take(signal);
    try {
      return await task();
    } finally {
      over();
    }
  };
}
