// Which connection fetches which bytes.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { type Extents, gapsOf, withExtent } from "../../../../src/cache/download/extents.ts";
import { createWorkList, type Piece } from "../../../../src/cache/download/work-list.ts";

const size = 60;
const range = fc.tuple(fc.nat(size), fc.nat(size)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);

describe("a work list", () => {
  it("gives every missing byte to one connection, whatever breaks", () => {
    fc.assert(
      fc.property(fc.array(range), fc.array(fc.tuple(fc.nat(3), fc.nat(9), fc.nat(9))), (there, steps) => {
        const extents = there.reduce<Extents>((sum, [from, to]) => withExtent(sum, from, to), []);
        const gaps = gapsOf(extents, size);
        const work = createWorkList(gaps, { pieceBytes: 8, leastBytes: 2 });
        const times = Array.from({ length: size }, () => 0);
        const lanes: (Piece | null)[] = [null, null, null, null];
        const advance = (piece: Piece, most: number): void => {
          for (let n = 0; n < most && piece.at < piece.to; n++) times[piece.at] = (times[piece.at++] ?? 0) + 1;
        };
        for (const [lane, bytes, then] of steps) {
          const piece = (lanes[lane] ??= work.claim());
          if (!piece) continue;
          advance(piece, bytes);
          if (piece.at === piece.to && then < 5) work.extend(piece);
          if (piece.at === piece.to || then === 9) {
            work.release(piece);
            lanes[lane] = null;
          }
        }
        for (const piece of lanes) if (piece) work.release(piece);
        for (let piece = work.claim(); piece; piece = work.claim()) {
          advance(piece, size);
          work.release(piece);
        }
        assert.equal(work.left(), 0);
        for (const [at, count] of times.entries()) {
          assert.equal(count, gaps.some(([from, to]) => at >= from && at < to) ? 1 : 0, `byte ${at}`);
        }
      }),
    );
  });
});
