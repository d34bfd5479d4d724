// How fast bytes come in, smoothed, and how long the rest takes. Pure: the time comes in as data.

export interface Pace {
  /** Bytes that came over the network, at a time in milliseconds. */
  add(bytes: number, now: number): void;
  /** Bytes per second, whole; 0 while nothing can be said. */
  bytesPerSecond(now: number): number;
}

/** A rate of so many milliseconds ago counts for about a third. */
const memoryMs = 4_000;
/** Shorter looks would measure how bytes are bundled. */
const lookMs = 200;

export function createPace(start: number): Pace {
  let rate: number | null = null;
  let since = start;
  let waiting = 0;

  function look(now: number): void {
    const elapsed = now - since;
    if (elapsed < lookMs) return;
    const seen = (waiting * 1000) / elapsed;
    rate = rate === null ? seen : rate + (seen - rate) * (1 - Math.exp(-elapsed / memoryMs));
    since = now;
    waiting = 0;
  }

  return {
    add(bytes, now) {
      waiting += bytes;
      look(now);
    },
    bytesPerSecond(now) {
      look(now);
      return Math.round(rate ?? 0);
    },
  };
}

/** Whole seconds for the rest, rounded up; null where the rate says nothing. */
export function secondsLeft(bytes: number, bytesPerSecond: number): number | null {
  if (bytes <= 0) return 0;
  return bytesPerSecond > 0 ? Math.ceil(bytes / bytesPerSecond) : null;
}
