// When to try again.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { actionBackoff, backoffDelay, crashBackoff, jittered, restartAfterCrash } from "../../../src/core/backoff.ts";

const runs = { seed: 1, numRuns: 300 };

test("actions: five seconds, doubled, three minutes at most", () => {
  assert.deepEqual(
    [0, 1, 2, 3, 6, 7, 5000].map((failures) => backoffDelay(failures, actionBackoff)),
    [0, 5_000, 10_000, 20_000, 160_000, 180_000, 180_000],
  );
});

test("the wait never shrinks and never goes over its cap", () => {
  fc.assert(
    fc.property(fc.nat({ max: 2_000 }), (failures) => {
      const delay = backoffDelay(failures, actionBackoff);
      assert.ok(delay <= backoffDelay(failures + 1, actionBackoff) && delay <= actionBackoff.maxMs);
    }),
    runs,
  );
});

const now = 10_000_000;
const crashes: readonly (readonly [why: string, crashes: readonly number[], at: number])[] = [
  ["none", [], 0],
  ["the first is mended at once", [now - 5], now - 5],
  ["the second after a second", [now - 50, now - 5], now + 995],
  ["the third after two", [now - 90, now - 50, now - 5], now + 1_995],
  ["old ones are forgotten", [now - crashBackoff.windowMs, now - 5], now - 5],
  ["a loop waits a minute", Array.from({ length: 20 }, (_, index) => now - 20 + index), now - 1 + 60_000],
];

for (const [why, times, at] of crashes) test(`crashes: ${why}`, () => assert.equal(restartAfterCrash(times, now), at));

test("an interval is spread by a tenth", () => {
  fc.assert(
    fc.property(
      fc.nat({ max: 1_000_000 }),
      fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
      (interval, random) => {
        const spread = jittered(interval, random);
        assert.ok(
          Number.isInteger(spread) && spread >= Math.floor(interval * 0.9) && spread <= Math.ceil(interval * 1.1),
        );
      },
    ),
    runs,
  );
  assert.equal(jittered(60_000, 0.5), 60_000);
});
