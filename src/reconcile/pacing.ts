// When passes run, when the document counts as settled, and when a failed action may be tried again.
import { actionBackoff, backoffDelay } from "../core/backoff.ts";
import type { GatewayError } from "../core/errors.ts";
import { longestTimerMs } from "../core/steady.ts";
import { type Action, actionKinds, type BackoffEntry, backoffKey } from "../plan/actions.ts";

/** ms that a pass may be put off that no call waits for: at once it would hold up the load or the chat that the event is of. */
const laterMs = 100;

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
  let later: NodeJS.Timeout | undefined;
  let stopped = true;
  let failed = false;

  /** Asks for a pass soon. */
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
      clearTimeout(later);
      later = undefined;
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
    start: (): void => {
      stopped = false;
      wake();
    },
    wake,
    /** Asks for a pass within a moment. */
    wakeLater: (): void => {
      later ??= setTimeout(wake, laterMs).unref();
    },
    /** A pass will begin that was asked for. */
    isDue: () => due,
    isStopped: () => stopped,
    /** Resolves once the pass under way has ended. */
    stop: async (): Promise<void> => {
      stopped = true;
      clearTimeout(timer);
      clearTimeout(later);
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
    /** The document is another now. */
    changed: (): void => {
      const time = now();
      if (time > settledAt) burstBeganAt = time;
      settledAt = Math.min(time + quietMs, burstBeganAt + longestMs);
    },
    /** ms since the epoch: before this another change is likely. */
    settledAt: () => settledAt,
  };
}

/** Gateways that are each other's mirrors and tried again in step would find each other pulling, and wait, for ever. */
const spread = 0.3;

/** How often each action failed, so that the planner can hold it back. By counts and times alone. `random` in [0, 1). */
export function createBackoffBook(now: () => number, random: () => number = () => 0) {
  const entries = new Map<string, BackoffEntry>();
  return {
    entries: (): ReadonlyMap<string, BackoffEntry> => entries,
    failed: (action: Action, error: GatewayError): BackoffEntry => {
      const failures = (entries.get(backoffKey(action))?.failures ?? 0) + 1;
      const stalled = error.reaction === "stall" || (error.reaction === "retry" && failures >= actionBackoff.tries);
      const step = backoffDelay(failures, actionBackoff) * (1 + spread * random());
      const delay = Math.max(Math.min(Math.round(step), actionBackoff.maxMs), error.retryAfterMs ?? 0);
      const entry = {
        failures,
        until: now() + delay,
        stalled,
        neededBytes: error.neededBytes,
        code: error.code,
        reason: error.reason,
        message: error.message,
        hint: error.hint,
      };
      entries.set(backoffKey(action), entry);
      return entry;
    },
    succeeded: (action: Action): void => {
      // A start and a restart of the router are one matter: where one worked, the other's failures are over.
      for (const kind of actionKinds) entries.delete(`${kind} ${action.key}`);
    },
    /** The document has changed, or a retry was requested: everything may be tried again. */
    reset: () => entries.clear(),
  };
}
