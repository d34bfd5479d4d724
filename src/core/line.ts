// A bounded queue: so many at once, the others wait first in, first out. Pure.

export interface Line {
  /**
   * Waits for a turn; call the result, once, when it is over. Throws `refusal` where too many wait already, and `gone`
   * when the signal aborts first.
   */
  take(signal: AbortSignal): Promise<() => void>;
  /** How many wait. */
  waiting(): number;
}

export function createLine(options: {
  readonly width: number;
  readonly depth: number;
  readonly refusal: (waiting: number) => Error;
  readonly gone: (signal: AbortSignal) => Error;
}): Line {
  const line: (() => void)[] = [];
  let busy = 0;

  function over(): () => void {
    let isOver = false;
    return () => {
      if (isOver) return;
      isOver = true;
      const next = line.shift();
      // The place goes to the next waiter: a caller that arrives now does not overtake it.
      if (next) next();
      else busy--;
    };
  }

  return {
    waiting: () => line.length,
    take: async (signal) => {
      if (signal.aborted) throw options.gone(signal);
      if (busy < options.width) {
        busy++;
        return over();
      }
      if (line.length >= options.depth) throw options.refusal(line.length);
      return new Promise((resolve, reject) => {
        const mine = (): void => {
          signal.removeEventListener("abort", leave);
          resolve(over());
        };
        const leave = (): void => {
          line.splice(line.indexOf(mine), 1);
          reject(options.gone(signal));
        };
        line.push(mine);
        signal.addEventListener("abort", leave, { once: true });
      });
    },
  };
}
