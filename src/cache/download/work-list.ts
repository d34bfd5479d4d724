// Divides the missing bytes of a download among its connections. Pure.
import { coveredBytes, type Extent, type Extents, withExtent } from "./extents.ts";

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
