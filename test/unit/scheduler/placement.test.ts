// Who gets a place, and who gives one up: the rules, and what they come to for many models over a long time.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { noTurn, type Placed, roomFor, turnAfter } from "../../../src/scheduler/state/placement.ts";

const now = 1_000_000;

function placed(id: string, rest: Partial<Placed> = {}): Placed {
  return { id, isLeaving: false, pinned: false, inFlight: 0, waiting: 0, lastUsed: 0, turn: noTurn, ...rest };
}

/** Loaded `ago` ms before now, in 2 s. */
function turned(ago: number): Placed["turn"] {
  return turnAfter(2_000, now - ago);
}

test("a free place is taken, else the model that nobody uses and was used longest ago goes", () => {
  assert.deepEqual(roomFor([placed("a")], 2, null, now), { kind: "free" });
  const both = [placed("a", { lastUsed: 20 }), placed("b", { lastUsed: 10 })];
  assert.deepEqual(roomFor(both, 2, null, now), { kind: "evict", id: "b" });
  const used = [placed("a", { lastUsed: 20 }), placed("b", { lastUsed: 10, inFlight: 1 })];
  assert.deepEqual(roomFor(used, 2, null, now), { kind: "evict", id: "a" });
});

test("a pinned model never goes; where all are pinned, that is said; while one leaves no other has to", () => {
  const one = [placed("a", { pinned: true }), placed("b", { lastUsed: 10 })];
  assert.deepEqual(roomFor(one, 2, null, now), { kind: "evict", id: "b" });
  const both = [placed("a", { pinned: true, inFlight: 1 }), placed("b", { pinned: true })];
  assert.deepEqual(roomFor(both, 2, null, now), { kind: "pinned" });
  const leaving = [placed("a", { isLeaving: true }), placed("b")];
  const wait = { kind: "wait", yields: null, until: Number.POSITIVE_INFINITY };
  assert.deepEqual(roomFor(leaving, 2, "a", now), wait);
  assert.deepEqual(roomFor(leaving, 1, "a", now), { kind: "evict", id: "b" });
});

test("one that is used keeps its place for its turn; after it, it takes no new requests", () => {
  const during = roomFor([placed("a", { inFlight: 3, turn: turned(500) })], 1, null, now);
  assert.deepEqual(during, { kind: "wait", yields: null, until: now + 1_500 });
  const after = roomFor([placed("a", { inFlight: 3, waiting: 9, turn: turned(2_000) })], 1, null, now);
  assert.deepEqual(after, { kind: "wait", yields: "a", until: Number.POSITIVE_INFINITY });
});

test("of several the one that has had its place longest yields, and goes on doing so; its waiters wait for another turn", () => {
  const places = [
    placed("a", { inFlight: 1, turn: turned(5_000) }),
    placed("b", { inFlight: 1, waiting: 3, turn: turned(9_000) }),
  ];
  const first = roomFor(places, 2, null, now);
  assert.equal(first.kind === "wait" && first.yields, "b");
  const second = roomFor([...places].reverse(), 2, "a", now);
  assert.equal(second.kind === "wait" && second.yields, "a");
  const rested = [places[0] ?? placed("a"), placed("b", { waiting: 3, turn: turned(9_000) })];
  assert.equal(roomFor(rested, 2, null, now).kind, "wait", "its waiters are about to be let in");
  assert.deepEqual(roomFor(rested, 2, "b", now), { kind: "evict", id: "b" });
});

test("within its turn an idle model is kept for a moment, for a client that asks again at once", () => {
  const resting = (idle: number): Placed => placed("a", { turn: turned(1_000), lastUsed: now - idle });
  assert.deepEqual(roomFor([resting(10)], 1, null, now), { kind: "wait", yields: null, until: now + 90 });
  assert.deepEqual(roomFor([resting(100)], 1, null, now), { kind: "evict", id: "a" });
});

test("a turn is as long as the load was, within bounds", () => {
  assert.deepEqual(
    [1, 5_000, 600_000].map((loadMs) => turnAfter(loadMs, now)),
    [1_000, 5_000, 30_000].map((ms) => ({ beganAt: now, ms })),
  );
});

test("one place and models that are always asked for: each has its turns, and at least half of the time is theirs", () => {
  fc.assert(
    fc.property(fc.integer({ min: 2, max: 6 }), fc.integer({ min: 1, max: 20_000 }), (count, loadMs) => {
      // Each answer takes 100 ms; a model that lost its place goes to the end of the line.
      const line = Array.from({ length: count }, (_, index) => `m${index}`);
      const answered = new Map<string, number>();
      let time = 0;
      let loading = 0;
      let yields: string | null = null;
      let place: Placed | null = null;
      while (time < 40 * (loadMs + 30_000)) {
        if (place === null) {
          time += loadMs;
          loading += loadMs;
          place = placed(line.shift() ?? "", { turn: turnAfter(loadMs, time), waiting: 100 });
          yields = null;
          continue;
        }
        const room = roomFor([place], 1, yields, time);
        if (room.kind === "evict") {
          line.push(place.id);
          place = null;
          continue;
        }
        yields = room.kind === "wait" ? room.yields : null;
        if (yields === null) answered.set(place.id, (answered.get(place.id) ?? 0) + 1);
        time += 100;
        place = { ...place, inFlight: 0, lastUsed: time };
      }
      const counts = [...answered.values()];
      assert.equal(counts.length, count);
      assert.ok(Math.max(...counts) <= 2 * Math.min(...counts) + 400, String(counts));
      if (loadMs <= 30_000) assert.ok(loading <= time * 0.55, `${loading} of ${time} ms`);
    }),
    { numRuns: 40 },
  );
});
