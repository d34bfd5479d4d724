// When passes run, and when the document counts as settled.
import { longestTimerMs } from "../core/steady.ts";

/** Many wakes make one pass, and each pass is followed by another one in time. */
export function createPacing(options: {
  readonly pass: () => Promise<void>;
  /** ms until the next pass; `failed`: the last one threw. */
  readonly untilNext: (failed: boolean) => number;
  readonly onError: (error: unknown) => void;
}) {
  let due = false;
  let passing: Promise<void> | null = null;
  let timer: NodeJS.Timeout | undefined;
  let stopped = true;
  let failed = false;

  function wake(): void {
    due = true;
    if (stopped || passing) return;
    passing = run().finally(() => {
      passing = null;
      if (due && !stopped) wake();
    });
  }

  async function run(): Promise<void> {
    // Everything that arrives in this turn of the event loop is part of one pass.
    await new Promise(setImmediate);
    while (due && !stopped) {
      due = false;
      try {
        await options.pass();
        failed = false;
      } catch (error) {
        failed = true;
        options.onError(error);
      }
    }
    clearTimeout(timer);
    if (stopped) return;
    timer = setTimeout(wake, Math.min(Math.max(1, options.untilNext(failed)), longestTimerMs)).unref();
  }

  return {
    start: (): void => {
      stopped = false;
      wake();
    },
    wake,
    /** A pass will begin that was asked for. */
    isDue: () => due,
    isStopped: () => stopped,
    /** Resolves once the pass under way has ended. */
    stop: async (): Promise<void> => {
      stopped = true;
      clearTimeout(timer);
      await passing;
    },
  };
}

/** ms between two changes of one burst. */
const quietMs = 100;
/** ms that none of them waits longer. */
const longestMs = 2_000;

/** When the document has come to rest: changes that follow one another closely are made as one. */
export function createSettling(now: () => number) {
  let burstBeganAt = 0;
  let settledAt = 0;
  return {
    changed: (): void => {
      const time = now();
      if (time > settledAt) burstBeganAt = time;
      settledAt = Math.min(time + quietMs, burstBeganAt + longestMs);
    },
    /** ms since the epoch: before this another change is likely. */
    settledAt: () => settledAt,
  };
}
