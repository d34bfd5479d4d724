// Which bytes of a file are there.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import {
  coveredBytes,
  type Extents,
  frontOf,
  gapsOf,
  readExtents,
  withExtent,
} from "../../../../src/cache/download/extents.ts";

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
