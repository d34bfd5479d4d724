// Numbers that are the same for the same seed: what a test does at random it can do again.

/** From 0 to below 1. */
export type Random = () => number;

/** Mulberry32. */
export function randomFrom(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** A whole number from `low` to below `high`. */
export const between = (random: Random, low: number, high: number): number => Math.floor(low + random() * (high - low));

export function pick<T>(random: Random, list: readonly T[]): T {
  const found = list[between(random, 0, list.length)];
  if (found === undefined) throw new RangeError("nothing to pick from");
  return found;
}

export function shuffled<T>(random: Random, list: readonly T[]): T[] {
  const keyed = list.map((value) => ({ value, key: random() }));
  return keyed.toSorted((a, b) => a.key - b.key).map(({ value }) => value);
}
