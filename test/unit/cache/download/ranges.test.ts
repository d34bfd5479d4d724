// The bookkeeping of a download: which bytes are there, and which connection fetches which.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { createPace, secondsLeft } from "../../../../src/cache/download/progress.ts";
import {
  coveredBytes,
  createWorkList,
  type Extents,
  frontOf,
  gapsOf,
  type Piece,
  readExtents,
  withExtent,
} from "../../../../src/cache/download/ranges.ts";

const size = 60;
const range = fc.tuple(fc.nat(size), fc.nat(size)).map(([a, b]) => [Math.min(a, b), Math.max(a, b)] as const);

describe("extents", () => {
  it("hold exactly the bytes that were added, sorted and merged", () => {
    fc.assert(
      fc.property(fc.array(range), (ranges) => {
        const bytes = Array.from({ length: size }, () => false);
        let extents: Extents = [];
        for (const [from, to] of ranges) {
          bytes.fill(true, from, to);
          extents = withExtent(extents, from, to);
        }
        const shown = Array.from({ length: size }, (_, at) => extents.some(([from, to]) => at >= from && at < to));
        assert.deepEqual(shown, bytes);
        assert.ok(extents.every(([from], n) => n === 0 || from > (extents[n - 1]?.[1] ?? size)));
        assert.equal(coveredBytes(extents) + coveredBytes(gapsOf(extents, size)), size);
        assert.equal(frontOf(extents), bytes.indexOf(false) < 0 ? size : bytes.indexOf(false));
        assert.deepEqual(readExtents(JSON.parse(JSON.stringify(extents))), extents);
      }),
    );
    for (const bad of [null, [[1]], [[2, 1]], [[-1, 2]], [["0", 2]], [[0, 1.5]]]) assert.equal(readExtents(bad), null);
  });
});

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

describe("the pace", () => {
  it("is smoothed, falls while nothing comes, and says how long the rest takes", () => {
    const pace = createPace(0);
    assert.equal(pace.bytesPerSecond(100), 0);
    for (let now = 100; now <= 10_000; now += 100) pace.add(1_000_000, now);
    const steady = pace.bytesPerSecond(10_000);
    assert.ok(Math.abs(steady - 10_000_000) < 100_000, String(steady));
    assert.ok(pace.bytesPerSecond(14_000) < steady / 2);
    assert.equal(secondsLeft(25_000_000, 10_000_000), 3);
    assert.equal(secondsLeft(1, 0), null);
    assert.equal(secondsLeft(0, 0), 0);
  });
});
