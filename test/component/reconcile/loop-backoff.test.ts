// Failures of actions: tried again later and later, given up after five, and forgiven when something changes.
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { type ErrorCode } from "../../../src/core/error-catalog.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import { startLooping, type World } from "../../support/looping.ts";
import { until } from "../../support/scratch.ts";

const a = "acme/a:Q8_0";
const b = "acme/b:Q8_0";

interface Failing extends World {
  /** Tries of model a so far. */
  tries(): number;
  /** From now on it works. */
  mend(): void;
  /** Moves the clock, has the loop look, and waits until all is quiet. */
  later(ms: number): Promise<void>;
}

async function failing(t: TestContext, code: ErrorCode = "checksum_mismatch", retryAfterMs?: number): Promise<Failing> {
  let tries = 0;
  let broken = true;
  const world = startLooping(t, {
    pulling: async (action) => {
      if (action.kind !== "model.pull" || action.model !== a) return;
      tries++;
      if (broken) throw new GatewayError(code, "no", retryAfterMs === undefined ? {} : { retryAfterMs });
    },
  });
  const quiet = (): Promise<unknown> =>
    world.loop.waitFor({
      generation: 0,
      timeoutMs: 5_000,
      test: ({ plan, running }) => plan.actions.length === 0 && running.length === 0,
    });
  world.loop.start();
  world.want(a, b);
  await until("both were tried", () => tries > 0 && world.cached.has(b));
  await quiet();
  return Object.assign(world, {
    tries: () => tries,
    mend: () => {
      broken = false;
    },
    later: async (ms: number) => {
      world.clock += ms;
      await quiet();
    },
  });
}

describe("an action that fails", () => {
  it("is tried again after 5 s, then twice as long each time, and stalls after five tries", async (t) => {
    const world = await failing(t);
    assert.deepEqual(world.planned(), { actions: [], held: [`model/${a} backoff`] });
    for (const [index, seconds] of [5, 10, 20, 40].entries()) {
      await world.later(seconds * 1000 - 1);
      assert.equal(world.tries(), index + 1, `too early, after ${seconds} s`);
      await world.later(1);
      assert.equal(world.tries(), index + 2, `not after ${seconds} s`);
    }
    assert.deepEqual(world.planned(), { actions: [], held: [`model/${a} stalled`] });
    await world.later(86_400_000);
    assert.equal(world.tries(), 5);
    const [entry] = world.loop.backoff().values();
    assert.deepEqual(
      [entry?.failures, entry?.stalled, entry?.code, entry?.reason, entry?.message],
      [5, true, "checksum_mismatch", "ChecksumMismatch", "no"],
    );
  });

  it("does not hold up the others", async (t) => {
    const world = await failing(t);
    assert.deepEqual([...world.cached], [b]);
  });

  it("starts over when it has worked once", async (t) => {
    const world = await failing(t);
    await world.later(5_000);
    world.mend();
    await world.later(10_000);
    assert.ok(world.cached.has(a));
    assert.deepEqual([...world.loop.backoff().keys()], []);
    assert.deepEqual(world.planned(), { actions: [], held: [] });
  });

  it("stalls at once where trying again mends nothing", async (t) => {
    const world = await failing(t, "hub_denied");
    assert.deepEqual(world.planned().held, [`model/${a} stalled`]);
    await world.later(86_400_000);
    assert.equal(world.tries(), 1);
  });

  it("waits as long as the other side asks for, where that is longer", async (t) => {
    const world = await failing(t, "hub_rate_limited", 60_000);
    await world.later(59_999);
    assert.equal(world.tries(), 1);
    await world.later(1);
    assert.equal(world.tries(), 2);
    const shorter = await failing(t, "hub_rate_limited", 1_000);
    await shorter.later(4_999);
    assert.equal(shorter.tries(), 1);
  });

  it("is tried again at once with a new document", async (t) => {
    const world = await failing(t, "hub_denied");
    world.mend();
    world.want(a, b, "acme/c:Q8_0");
    await until("it is there", () => world.cached.has(a));
    assert.equal(world.tries(), 2);
  });

  it("is tried again at once when somebody asks, and starts over", async (t) => {
    const world = await failing(t);
    for (const seconds of [5, 10, 20, 40]) await world.later(seconds * 1000);
    assert.deepEqual(world.planned().held, [`model/${a} stalled`]);
    world.loop.retry();
    await until("it was tried", () => world.tries() === 6);
    await world.later(0);
    assert.deepEqual(world.planned().held, [`model/${a} backoff`]);
    world.loop.wake();
    await world.later(4_999);
    assert.equal(world.tries(), 6);
  });
});
