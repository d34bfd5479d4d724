// Retries of a request that broke off. Counts only failures in a row, with nothing gained in between.
import { setTimeout as delay } from "node:timers/promises";
import { backoffDelay } from "../../core/backoff.ts";
import type { GatewayError } from "../../core/errors.ts";
import { cancelled } from "../../hub/errors.ts";

export interface TryOptions {
  /** Failures in a row after which the transfer fails. */
  readonly tries: number;
  /** Milliseconds before the second try; doubled for each further one. */
  readonly retryMs: number;
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
/** For a hub that asks for a longer wait the pull fails. */
const longestAskedMs = 5 * 60_000;
/** Less than this between two failures is no progress. */
const leastGain = 64 * 1024;

export function createTries({ tries, retryMs }: TryOptions): Tries {
  let failures = 0;
  let gainedBefore = 0;
  return {
    async again(error, gained, signal) {
      if (error.code !== "hub_unreachable" && error.code !== "hub_rate_limited") throw error;
      if (gained - gainedBefore >= leastGain) failures = 0;
      gainedBefore = gained;
      failures++;
      const asked = error.retryAfterMs ?? 0;
      if (failures >= tries || asked > longestAskedMs) throw error;
      const wait = Math.max(asked, backoffDelay(failures, { firstMs: retryMs, maxMs: longestWaitMs }));
      await delay(wait, undefined, { signal }).catch(() => {
        throw cancelled("a file");
      });
    },
  };
}
