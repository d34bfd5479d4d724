// Byte ranges of a file: which are on the disk, and which connection fetches which of the others. Pure.

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

/** What one connection fetches. `at` moves on as bytes come in; `to` may move down when another takes the rest. */
export interface Piece {
  at: number;
  to: number;
}

export type WorkList = ReturnType<typeof createWorkList>;

export interface WorkListOptions {
  readonly gaps: Extents;
  /** Bytes of a piece, at most. Bounds how far apart the connections write, as the digest follows from the front. */
  readonly pieceBytes: number;
  /** Less than twice this is not divided. */
  readonly leastBytes: number;
}

export function createWorkList({ gaps, pieceBytes, leastBytes }: WorkListOptions) {
  let free = gaps;
  const claimed = new Set<Piece>();

  function take(from: number, to: number): void {
    free = free.flatMap(([start, end]) => {
      if (end <= from || start >= to) return [[start, end] as const];
      return [[start, Math.min(end, from)] as const, [Math.max(start, to), end] as const].filter(([a, b]) => a < b);
    });
  }

  function half(): Piece | null {
    let largest: Piece | null = null;
    for (const piece of claimed) {
      if (largest === null || piece.to - piece.at > largest.to - largest.at) largest = piece;
    }
    if (largest === null || largest.to - largest.at < 2 * leastBytes) return null;
    const middle = largest.at + Math.ceil((largest.to - largest.at) / 2);
    const piece = { at: middle, to: largest.to };
    largest.to = middle;
    return piece;
  }

  function gapAt(position: number): readonly [number, number] | undefined {
    return free.find(([from]) => from === position);
  }

  return {
    /** The next piece, or null if nothing is left that is worth a connection of its own. */
    claim(): Piece | null {
      const first = free[0];
      // Smaller towards the end: all end together then, and the digest has little left to follow.
      const share = Math.ceil(coveredBytes(free) / (2 * (claimed.size + 1)));
      const bytes = Math.max(leastBytes, Math.min(pieceBytes, share));
      const piece = first ? { at: first[0], to: Math.min(first[1], first[0] + bytes) } : half();
      if (!piece) return null;
      take(piece.at, piece.to);
      claimed.add(piece);
      return piece;
    },
    /** More for a connection that reads on past its piece: whether the bytes behind it were still free. */
    extend(piece: Piece): boolean {
      const behind = gapAt(piece.to);
      if (!behind) return false;
      const to = Math.min(behind[1], piece.to + pieceBytes);
      take(piece.to, to);
      piece.to = to;
      return true;
    },
    /** The end of the free bytes behind a piece: what may be requested at once. */
    freeTo: (piece: Piece): number => gapAt(piece.to)?.[1] ?? piece.to,
    /** The piece is done, or broke off; what it lacks is free again. */
    release(piece: Piece): void {
      claimed.delete(piece);
      free = withExtent(free, piece.at, piece.to);
    },
    /** Bytes that have not come in. */
    left(): number {
      let bytes = coveredBytes(free);
      for (const piece of claimed) bytes += piece.to - piece.at;
      return bytes;
    },
  };
}
