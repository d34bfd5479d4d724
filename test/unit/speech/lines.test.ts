// Standing in line for an engine, and emptying it for a change.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createLeases } from "../../../src/speech/leases.ts";
import { createTurns } from "../../../src/speech/turns.ts";
import { refusal } from "../../support/scratch.ts";

const never = new AbortController().signal;

describe("turns", () => {
  it("are so many at once, then in order, and no line is endless", async () => {
    const turns = createTurns({ width: 2, depth: 2, what: "things" });
    const order: number[] = [];
    const [first, second] = [await turns.take(never), await turns.take(never)];
    const third = turns.take(never).then((over) => (order.push(3), over));
    const leaving = new AbortController();
    const fourth = refusal(turns.take(leaving.signal));
    const error = await refusal(turns.take(never));
    assert.equal(error.status, 503);
    assert.match(error.message, /^2 things are waiting already/);
    leaving.abort();
    assert.equal((await fourth).code, "cancelled");
    const fifth = turns.take(never).then((over) => (order.push(5), over));
    assert.equal(turns.waiting(), 2);
    first();
    // Twice is once.
    first();
    await setImmediate();
    assert.deepEqual(order, [3]);
    second();
    (await fifth)();
    (await third)();
    assert.deepEqual([order, turns.waiting()], [[3, 5], 0]);
    (await turns.take(never))();
    assert.equal((await refusal(turns.take(AbortSignal.abort()))).code, "cancelled");
  });
});

describe("leases", () => {
  it("are given to many; a drain waits for them, and who comes later waits for it", async () => {
    const leases = createLeases();
    const order: string[] = [];
    const [one, two] = [await leases.lease(never), await leases.lease(never)];
    const drain = leases.drain(never).then((reopen) => (order.push("drained"), reopen));
    const late = leases.lease(never).then((over) => (order.push("late"), over));
    one();
    one();
    await setImmediate();
    assert.deepEqual([order, leases.users()], [[], 1]);
    two();
    const reopen = await drain;
    await setImmediate();
    assert.deepEqual([order, leases.users()], [["drained"], 0]);
    reopen();
    (await late)();
    assert.deepEqual(order, ["drained", "late"]);
  });

  it("go on where a drain is given up, and drains follow one another", async () => {
    const leases = createLeases();
    const one = await leases.lease(never);
    const giveUp = new AbortController();
    const given = refusal(leases.drain(giveUp.signal));
    const late = leases.lease(never);
    giveUp.abort();
    assert.equal((await given).code, "cancelled");
    (await late)();
    one();
    const first = await leases.drain(never);
    let second = false;
    const next = leases.drain(never).then((reopen) => {
      second = true;
      return reopen;
    });
    await setImmediate();
    assert.equal(second, false);
    first();
    (await next)();
    assert.equal((await refusal(leases.lease(AbortSignal.abort()))).code, "cancelled");
    assert.equal(leases.users(), 0);
  });
});
