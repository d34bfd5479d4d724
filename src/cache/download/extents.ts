// Byte ranges of a file: those on the disk, and those that are missing. Pure.

/** From, and up to but without. */
export type Extent = readonly [from: number, to: number];
/** In order, with a gap between each two. */
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
  const starts = [0, ...extents.map(([, to]) => to)];
  const ends = [...extents.map(([from]) => from), size];
  return starts.map((from, at): Extent => [from, ends[at] ?? size]).filter(([from, to]) => from < to);
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

/** Extents that come from a file; null where they are none. */
export function readExtents(value: unknown): Extents | null {
  return Array.isArray(value) && value.every(isExtent) ? value : null;
}

function isExtent(value: unknown): value is Extent {
  if (!Array.isArray(value) || value.length !== 2 || !value.every(Number.isSafeInteger)) return false;
  const [from, to] = value as [number, number];
  return from >= 0 && from < to;
}
