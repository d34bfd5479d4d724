// Byte ranges of a file: which are on the disk, and which connection fetches which of the others. Pure.

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

/** What one connection fetches. `at` moves on as bytes come in; `to` may move down when another takes the rest. */
export interface Piece {
  at: number;
  to: number;
}

export interface PieceSizes {
  /** Bytes of a piece, at most. Bounds how far apart the connections write, as the digest follows from the front. */
  readonly pieceBytes: number;
  /** Less than twice this is not divided. */
  readonly leastBytes: number;
}

export type WorkList = ReturnType<typeof createWorkList>;

export function createWorkList(gaps: Extents, { pieceBytes, leastBytes }: PieceSizes) {
  let free = gaps;
  const claimed = new Set<Piece>();

  /** Takes so many bytes from the front of a free extent; answers with their end. */
  function take(gap: Extent, bytes: number): number {
    const to = Math.min(gap[1], gap[0] + bytes);
    free = free.map((each): Extent => (each === gap ? [to, gap[1]] : each)).filter(([from, end]) => from < end);
    return to;
  }

  /** Half of what the connection with most left has left. */
  function half(): Piece | null {
    const [largest] = [...claimed].toSorted((a, b) => b.to - b.at - (a.to - a.at));
    if (!largest || largest.to - largest.at < 2 * leastBytes) return null;
    const middle = largest.at + Math.ceil((largest.to - largest.at) / 2);
    const piece = { at: middle, to: largest.to };
    largest.to = middle;
    return piece;
  }

  const gapBehind = ({ to }: Piece): Extent | undefined => free.find(([from]) => from === to);

  return {
    /** The next piece, or null if nothing is left that is worth a connection of its own. */
    claim(): Piece | null {
      const [first] = free;
      // Smaller towards the end: all end together then, and the digest has little left to follow.
      const share = Math.ceil(coveredBytes(free) / (2 * (claimed.size + 1)));
      const bytes = Math.max(leastBytes, Math.min(pieceBytes, share));
      const piece = first ? { at: first[0], to: take(first, bytes) } : half();
      if (piece) claimed.add(piece);
      return piece;
    },
    /** More for a connection that reads on past its piece: whether the bytes behind it were still free. */
    extend(piece: Piece): boolean {
      const behind = gapBehind(piece);
      if (behind) piece.to = take(behind, pieceBytes);
      return behind !== undefined;
    },
    /** The end of the free bytes behind a piece: what may be requested at once. */
    freeTo: (piece: Piece): number => gapBehind(piece)?.[1] ?? piece.to,
    /** The piece is done, or broke off; what it lacks is free again. */
    release(piece: Piece): void {
      claimed.delete(piece);
      free = withExtent(free, piece.at, piece.to);
    },
    /** Bytes that have not come in. */
    left: (): number => [...claimed].reduce((sum, { at, to }) => sum + to - at, coveredBytes(free)),
  };
}
