// When the document has come to rest: changes that follow one another closely are made as one.

/** ms between two changes of one burst. */
const quietMs = 100;
/** ms that none of them waits longer. */
const longestMs = 2_000;

export interface Settling {
  /** The document is another now. */
  changed(): void;
  /** ms since the epoch: before this another change is likely. */
  settledAt(): number;
}

export function createSettling(now: () => number): Settling {
  let burstBeganAt = 0;
  let settledAt = 0;
  return {
    changed: () => {
      const time = now();
      if (time > settledAt) burstBeganAt = time;
      settledAt = Math.min(time + quietMs, burstBeganAt + longestMs);
    },
    settledAt: () => settledAt,
  };
}
