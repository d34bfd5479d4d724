// The clock for durations: timeouts, pauses, timestamps in memory. The wall clock is set, by hand, by the network, after a
// suspend; a deadline measured with it fires at once, or a day late.

/** Whole ms, as of the epoch when the process began; never jumps. For dates in files and responses use `Date.now`. */
export function steadyNow(): number {
  return Math.floor(performance.timeOrigin + performance.now());
}

/** ms: a timer that is set for longer (24.8 days) fires at once. */
export const longestTimerMs = 2 ** 31 - 1;
