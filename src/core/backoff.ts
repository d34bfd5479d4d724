// When to try again: pure arithmetic on counts and times; the caller brings the clock.

export const actionBackoff = { firstMs: 5_000, maxMs: 180_000, tries: 5 } as const;
export const crashBackoff = { firstMs: 1_000, maxMs: 60_000, windowMs: 600_000 } as const;

/** Milliseconds to wait after the nth failure in a row (n from 1): doubling, capped. */
export function backoffDelay(failures: number, { firstMs, maxMs }: { firstMs: number; maxMs: number }): number {
  return failures <= 0 ? 0 : Math.min(maxMs, firstMs * 2 ** (failures - 1));
}

/** When a crashed process is started again, ms: the first crash in ten minutes is repaired at once, as clients wait; a loop is slowed down. */
export function restartAfterCrash(crashes: readonly number[], now: number): number {
  const recent = crashes.filter((at) => now - at < crashBackoff.windowMs);
  const last = recent.at(-1);
  return last === undefined ? 0 : last + backoffDelay(recent.length - 1, crashBackoff);
}

/** An interval spread by up to a tenth either way, so that many gateways do not resync in step. `random` in [0, 1). */
export function jittered(intervalMs: number, random: number): number {
  return Math.round(intervalMs * (0.9 + 0.2 * random));
}
