// How often, and after how long, something is asked for again that broke off. Counts only what brought nothing.
import { setTimeout as delay } from "node:timers/promises";
import type { GatewayError } from "../../core/errors.ts";
import { cancelled } from "../../hub/errors.ts";

export interface TryOptions {
  /** Failures in a row, with nothing gained in between, after which it is given up. */
  readonly tries: number;
  /** Milliseconds before the second try; doubled for each further one. */
  readonly retryMs: number;
  /** The longest that a hub's own wish to wait is heeded, in milliseconds; for a longer one the pull fails. */
  readonly patienceMs: number;
}

/** One connection's tries. */
export interface Tries {
  /**
   * After a failure: resolves when it may be tried again, throws the failure where it may not.
   * `gained`: bytes that came in so far, over all connections.
   */
  again(error: GatewayError, gained: number, signal: AbortSignal): Promise<void>;
}

const longestWaitMs = 15_000;
/** Less than this between two failures is no progress. */
const leastGain = 64 * 1024;

export function createTries({ tries, retryMs, patienceMs }: TryOptions): Tries {
  let failures = 0;
  let gainedBefore = 0;
  return {
    async again(error, gained, signal) {
      if (error.code !== "hub_unreachable" && error.code !== "hub_rate_limited") throw error;
      if (gained - gainedBefore >= leastGain) failures = 0;
      gainedBefore = gained;
      failures++;
      const wait = Math.max(error.retryAfterMs ?? 0, Math.min(retryMs * 2 ** (failures - 1), longestWaitMs));
      if (failures >= tries || wait > Math.max(patienceMs, longestWaitMs)) throw error;
      await delay(wait, undefined, { signal }).catch(() => {
        throw cancelled("a file");
      });
    },
  };
}
