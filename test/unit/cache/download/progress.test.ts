// The rate of a pull and the time left.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createPace, secondsLeft } from "../../../../src/cache/download/progress.ts";

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
