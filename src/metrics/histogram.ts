// Counts of durations by size, in buckets that are there from the start: one observation is one addition. Pure.

export class Histogram {
  /** Seconds; ascending. What takes longer than the last one is counted by itself. */
  readonly bounds: readonly number[];
  /** By bound, not yet summed up; the last is that of the rest. */
  readonly counts: Float64Array;
  /** Seconds. */
  sum = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.counts = new Float64Array(bounds.length + 1);
  }

  observe(seconds: number): void {
    let at = 0;
    while ((this.bounds[at] ?? Number.POSITIVE_INFINITY) < seconds) at++;
    this.counts[at] = (this.counts[at] ?? 0) + 1;
    this.sum += seconds;
  }
}
