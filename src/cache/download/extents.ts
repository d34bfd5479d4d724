// Which bytes of a file are there, as half-open ranges: sorted, disjoint, never touching. Pure.

/** From, and up to but without. */
export type Extent = readonly [from: number, to: number];
export type Extents = readonly Extent[];

/** The extents with one more range, merged with what it overlaps or touches. */
export function withExtent(extents: Extents, from: number, to: number): Extents {
  if (to <= from) return extents;
  const before = extents.filter(([, end]) => end < from);
  const after = extents.filter(([start]) => start > to);
  const merged = extents.slice(before.length, extents.length - after.length);
  const start = Math.min(from, merged[0]?.[0] ?? from);
  const end = Math.max(to, merged.at(-1)?.[1] ?? to);
  return [...before, [start, end], ...after];
}

/** The same without anything from `size` on. */
export function clipped(extents: Extents, size: number): Extents {
  return extents.filter(([from]) => from < size).map(([from, to]) => [from, Math.min(to, size)]);
}

/** What is missing of a file of `size` bytes. */
export function gapsOf(extents: Extents, size: number): Extents {
  const gaps: Extent[] = [];
  let at = 0;
  for (const [from, to] of clipped(extents, size)) {
    if (from > at) gaps.push([at, from]);
    at = to;
  }
  if (at < size) gaps.push([at, size]);
  return gaps;
}

/** Bytes in all extents. */
export function coveredBytes(extents: Extents): number {
  return extents.reduce((sum, [from, to]) => sum + to - from, 0);
}

/** Up to where the file is there from its beginning. */
export function frontOf(extents: Extents): number {
  const first = extents[0];
  return first?.[0] === 0 ? first[1] : 0;
}

/** Checks extents that come from a file; null where they are none. */
export function readExtents(value: unknown): Extents | null {
  if (!Array.isArray(value)) return null;
  let extents: Extents = [];
  for (const entry of value) {
    if (!Array.isArray(entry) || entry.length !== 2) return null;
    const [from, to]: unknown[] = entry;
    if (!Number.isSafeInteger(from) || !Number.isSafeInteger(to)) return null;
    if (typeof from !== "number" || typeof to !== "number" || from < 0 || to <= from) return null;
    extents = withExtent(extents, from, to);
  }
  return extents;
}
