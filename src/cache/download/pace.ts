// How fast bytes come in, smoothed, and how long the rest takes. Pure: the time comes in as data.

export interface Pace {
  /** Bytes that came over the network, at a time in milliseconds. */
  add(bytes: number, now: number): void;
  /** Bytes per second, whole; 0 while nothing can be said. */
  bytesPerSecond(now: number): number;
}

/** Over so many samples an old rate fades to a third. */
const memory = 20;

/** `sampleMs`: shorter samples would measure how bytes are bundled. */
export function createPace(start: number, sampleMs = 200): Pace {
  let rate: number | null = null;
  let since = start;
  let waiting = 0;

  function sample(now: number): void {
    const elapsed = now - since;
    if (elapsed < sampleMs) return;
    const seen = (waiting * 1000) / elapsed;
    rate = rate === null ? seen : rate + (seen - rate) * (1 - Math.exp(-elapsed / (memory * sampleMs)));
    since = now;
    waiting = 0;
  }

  return {
    add(bytes, now) {
      waiting += bytes;
      sample(now);
    },
    bytesPerSecond(now) {
      sample(now);
      return Math.round(rate ?? 0);
    },
  };
}

/** Whole seconds for the rest, rounded up; null where the rate says nothing. */
export function secondsLeft(bytes: number, bytesPerSecond: number): number | null {
  if (bytes <= 0) return 0;
  return bytesPerSecond > 0 ? Math.ceil(bytes / bytesPerSecond) : null;
}
