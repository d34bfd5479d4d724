// A model whose load fails rests, longer each time, until something about it is another.
import assert from "node:assert/strict";
import { test } from "node:test";
import { coolDownBackoff, createCoolDowns } from "../../../src/scheduler/load-backoff.ts";

function start(): { downs: ReturnType<typeof createCoolDowns>; world: { time: number; identity: string | null } } {
  const world: { time: number; identity: string | null } = { time: 1_000_000, identity: "file 1" };
  return { world, downs: createCoolDowns({ identity: () => world.identity, now: () => world.time }) };
}

test("it rests, twice as long each time, at most five minutes; its error says why, and when to come again", () => {
  const { downs, world } = start();
  const rests: number[] = [];
  for (let count = 0; count < 10; count++) {
    downs.failed("a", "magic is wrong");
    const refusal = downs.refusal("a");
    rests.push(refusal?.retryAfterMs ?? 0);
    assert.deepEqual([refusal?.code, refusal?.status], ["load_failing", 503]);
    assert.match(refusal?.message ?? "", /magic is wrong$/);
    world.time += rests.at(-1) ?? 0;
    assert.equal(downs.refusal("a"), null);
  }
  assert.deepEqual(rests.slice(0, 4), [5_000, 10_000, 20_000, 40_000]);
  assert.equal(rests.at(-1), coolDownBackoff.maxMs);
  assert.equal(downs.failing().get("a")?.failures, 10);
});

test("another file, other settings, somebody's word or a load that works end it; that nobody knows the file does not", () => {
  const { downs, world } = start();
  const isResting = (): boolean => downs.refusal("a") !== null;
  downs.failed("a", "no");
  downs.failed("b", "no");
  assert.equal(downs.refusal("c"), null);
  world.identity = null;
  assert.equal(isResting(), true);
  world.identity = "file 2";
  assert.deepEqual([isResting(), downs.failing().size], [false, 0]);
  for (const end of [() => downs.forgive("a"), () => downs.forgive(), () => downs.succeeded("a")]) {
    downs.failed("a", "no");
    assert.equal(isResting(), true);
    end();
    assert.equal(isResting(), false);
  }
  downs.failed("a", "no");
  assert.equal(downs.refusal("a")?.retryAfterMs, 5_000);
});
