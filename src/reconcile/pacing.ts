// When passes run: many wakes make one pass, and each pass is followed by another one in time.
import { longestTimerMs } from "../core/steady.ts";

export interface Pacing {
  start(): void;
  /** Asks for a pass soon. */
  wake(): void;
  /** A pass will begin that was asked for. */
  isDue(): boolean;
  isStopped(): boolean;
  /** Resolves once the pass under way has ended. */
  stop(): Promise<void>;
}

export function createPacing(options: {
  readonly pass: () => Promise<void>;
  /** ms until the next pass; `failed`: the last one threw. */
  readonly untilNext: (failed: boolean) => number;
  readonly onError: (error: unknown) => void;
}): Pacing {
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
    timer = setTimeout(wake, Math.min(Math.max(1, options.untilNext(failed)), longestTimerMs));
    timer.unref();
  }

  return {
    start: () => {
      stopped = false;
      wake();
    },
    wake,
    isDue: () => due,
    isStopped: () => stopped,
    stop: async () => {
      stopped = true;
      clearTimeout(timer);
      await passing;
    },
  };
}
