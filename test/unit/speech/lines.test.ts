// Standing in line for an engine, and emptying it for a change.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createLeases } from "../../../src/speech/leases.ts";
import { createTurns } from "../../../src/speech/turns.ts";
import { createVoiceTurns, type VoiceTurn } from "../../../src/speech/voice-turns.ts";
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

describe("turns of voices", () => {
  it("are shared by all who want one voice, and follow one another in the order of their asking", async () => {
    const turns = createVoiceTurns(() => 0);
    const order: string[] = [];
    const enter = async (voice: string, who: string): Promise<VoiceTurn> => {
      const turn = await turns.enter(voice, never);
      order.push(who);
      return turn;
    };
    const [a1, a2] = [await enter("a", "a1"), await enter("a", "a2")];
    const [b1, c1, b2] = [enter("b", "b1"), enter("c", "c1"), enter("b", "b2")];
    const a3 = await enter("a", "a3");
    a3.replaced = "before";
    assert.equal(a1.replaced, "before");
    for (const turn of [a1, a2, a3]) {
      await setImmediate();
      assert.deepEqual([order, turn.isOn()], [["a1", "a2", "a3"], true]);
      turn.leave();
    }
    for (const turn of await Promise.all([b1, b2])) turn.leave();
    (await c1).leave();
    assert.deepEqual(order, ["a1", "a2", "a3", "b1", "b2", "c1"]);
    assert.equal((await enter("a", "a4")).replaced, null);
  });

  it("end where others wait once their time is over, but not before they have begun", async (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    let now = 0;
    const pass = (ms: number): void => {
      now += ms;
      t.mock.timers.tick(ms);
    };
    const turns = createVoiceTurns(() => now);
    const a = await turns.enter("a", never);
    const leaving = new AbortController();
    const left = refusal(turns.enter("x", leaving.signal));
    const b = turns.enter("b", never);
    pass(100_000);
    a.begun(1_000);
    a.begun(9_000);
    pass(999);
    assert.deepEqual([a.isOn(), a.isAlone()], [true, true]);
    leaving.abort();
    assert.equal((await left).code, "cancelled");
    pass(1);
    assert.equal(a.isOn(), false);
    const next = await b;
    assert.equal(next.isOn(), true);
    const again = turns.enter("a", never);
    next.begun(1_000);
    a.leave();
    assert.equal(next.isOn(), true);
    pass(1_000);
    assert.equal((await again).isOn(), true);
    // Nobody waits: it goes on for as long as it is wanted, and ends at once when somebody comes.
    const more = await again;
    more.begun(1_000);
    next.leave();
    pass(60_000);
    assert.equal(more.isOn(), true);
    const last = await turns.enter("b", never);
    assert.deepEqual([more.isOn(), last.isOn()], [false, true]);
    last.begun(1_000);
    const third = turns.enter("c", never);
    // Its time is over, and the timer is late.
    now += 1_000;
    const late = turns.enter("b", never);
    assert.equal((await third).isOn(), true);
    (await third).leave();
    assert.equal((await late).isOn(), true);
  });
});
