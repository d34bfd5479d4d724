// How long a client's pull waits for an unreachable hub. Pure: the clock is an argument.
import type { Progress } from "../plan/actions.ts";

export interface PullTimes {
  /** ms without progress after which a client's pull is abandoned; default 10 min. */
  readonly pullPatienceMs?: number;
  /** ms after which a pull's stream repeats its last record; default 10 s. */
  readonly pullRepeatMs?: number;
}

export type PullPatience = ReturnType<typeof createPullPatience>;

/** Failed tries after which a pull without a byte is abandoned. */
const mostTries = 3;
/** After a first part: ms without progress. A home router takes a minute to restart. */
const defaultLimitMs = 10 * 60_000;

export function createPullPatience(now: () => number, limitMs = defaultLimitMs) {
  /** Bytes of each file, as last reported. */
  const told = new Map<string, number>();
  let failures = 0;
  let gainedAt: number | null = null;
  return {
    progressed: ({ file = "", fileCompleted, completed }: Progress): void => {
      const bytes = fileCompleted ?? completed;
      // By file, because each try starts at zero and passes the present files again: counted as progress, that kept the pull of an
      // unreachable hub from ever ending.
      if (bytes > (told.get(file) ?? 0)) gainedAt = now();
      told.set(file, bytes);
    },
    /** A try failed. */
    failed: (): void => void failures++,
    /** ms until the pull is abandoned; 0: now, infinite: not before another try has failed. */
    leftMs: (): number => {
      if (gainedAt !== null) return Math.max(0, gainedAt + limitMs - now());
      return failures >= mostTries ? 0 : Number.POSITIVE_INFINITY;
    },
  };
}
