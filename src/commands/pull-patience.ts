// How long a client's pull waits for a hub that is away. Pure: the clock comes in.
import type { Progress } from "../plan/actions.ts";

export interface PullTimes {
  /** ms without a byte more after which a pull is given up for its client; default 10 min. */
  readonly pullPatienceMs?: number;
  /** ms after which a pull's stream repeats its last record; default 10 s. */
  readonly pullRepeatMs?: number;
}

export interface PullPatience {
  progressed(progress: Progress): void;
  /** A try failed. */
  failed(): void;
  /** ms until the pull is given up; 0: now, infinite: not before another try has failed. */
  leftMs(): number;
}

/** Failed tries after which a pull is given up of which nothing has come. */
const mostTries = 3;
/** Once a part has come: ms without a byte more. A router at home takes a minute to restart. */
const defaultLimitMs = 10 * 60_000;

export function createPullPatience(now: () => number, limitMs = defaultLimitMs): PullPatience {
  /** Bytes of each file, as last told. */
  const told = new Map<string, number>();
  let failures = 0;
  let gainedAt: number | null = null;
  return {
    progressed: ({ file = "", fileCompleted, completed }) => {
      const bytes = fileCompleted ?? completed;
      // By file, as each try begins at nothing and goes over the files that are here already: counted as gains, that kept the
      // pull of a hub that had gone away from ever ending.
      if (bytes > (told.get(file) ?? 0)) gainedAt = now();
      told.set(file, bytes);
    },
    failed: () => void failures++,
    leftMs: () => {
      if (gainedAt !== null) return Math.max(0, gainedAt + limitMs - now());
      return failures >= mostTries ? 0 : Number.POSITIVE_INFINITY;
    },
  };
}
