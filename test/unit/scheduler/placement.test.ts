// Who gets a place, and who gives one up: the rules, and what they come to for many models over a long time.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { slotsView } from "../../../src/scheduler/state/placed.ts";
import {
  evictedFor,
  noTurn,
  type Placed,
  type Room,
  roomFor,
  turnAfter,
} from "../../../src/scheduler/state/placement.ts";
import { State } from "../../../src/scheduler/state/state.ts";
import { unknownMemory } from "../../../src/scheduler/state/world.ts";
import { limits } from "./machine-parts.ts";

const now = 1_000_000;

function placed(id: string, rest: Partial<Placed> = {}): Placed {
  return {
    id,
    isLeaving: false,
    pinned: false,
    inFlight: 0,
    waiting: 0,
    lastUsed: 0,
    turn: noTurn,
    takes: none,
    ...rest,
  };
}

const none: ReadonlyMap<string, number> = new Map();
const gib = (count: number): Placed["takes"] => new Map([["Host", count * 2 ** 30]]);

/** By model slots alone. */
function roomIn(all: readonly Placed[], slots: number, yields: string | null, at: number): Room {
  return roomFor(all, { slots, takes: none, limits: none, isShort: false }, yields, at);
}

/** Loaded `ago` ms before now, in 2 s. */
function turned(ago: number): Placed["turn"] {
  return turnAfter(2_000, now - ago);
}

test("a free place is taken, else the model that nobody uses and was used longest ago goes", () => {
  assert.deepEqual(roomIn([placed("a")], 2, null, now), { kind: "free" });
  const both = [placed("a", { lastUsed: 20 }), placed("b", { lastUsed: 10 })];
  assert.deepEqual(roomIn(both, 2, null, now), { kind: "evict", ids: ["b"] });
  const used = [placed("a", { lastUsed: 20 }), placed("b", { lastUsed: 10, inFlight: 1 })];
  assert.deepEqual(roomIn(used, 2, null, now), { kind: "evict", ids: ["a"] });
});

test("a pinned model never goes; where all are pinned, that is said; while one leaves no other has to", () => {
  const one = [placed("a", { pinned: true }), placed("b", { lastUsed: 10 })];
  assert.deepEqual(roomIn(one, 2, null, now), { kind: "evict", ids: ["b"] });
  const both = [placed("a", { pinned: true, inFlight: 1 }), placed("b", { pinned: true })];
  assert.deepEqual(roomIn(both, 2, null, now), { kind: "pinned" });
  const leaving = [placed("a", { isLeaving: true }), placed("b")];
  const wait = { kind: "wait", yields: null, until: Number.POSITIVE_INFINITY };
  assert.deepEqual(roomIn(leaving, 2, "a", now), wait);
  assert.deepEqual(roomIn(leaving, 1, "a", now), { kind: "evict", ids: ["b"] });
});

test("one that is used keeps its place for its turn; after it, it takes no new requests", () => {
  const during = roomIn([placed("a", { inFlight: 3, turn: turned(500) })], 1, null, now);
  assert.deepEqual(during, { kind: "wait", yields: null, until: now + 1_500 });
  const after = roomIn([placed("a", { inFlight: 3, waiting: 9, turn: turned(2_000) })], 1, null, now);
  assert.deepEqual(after, { kind: "wait", yields: "a", until: Number.POSITIVE_INFINITY });
});

test("of several the one that has had its place longest yields, and goes on doing so; its waiters wait for another turn", () => {
  const places = [
    placed("a", { inFlight: 1, turn: turned(5_000) }),
    placed("b", { inFlight: 1, waiting: 3, turn: turned(9_000) }),
  ];
  const first = roomIn(places, 2, null, now);
  assert.equal(first.kind === "wait" && first.yields, "b");
  const second = roomIn([...places].reverse(), 2, "a", now);
  assert.equal(second.kind === "wait" && second.yields, "a");
  const rested = [places[0] ?? placed("a"), placed("b", { waiting: 3, turn: turned(9_000) })];
  assert.equal(roomIn(rested, 2, null, now).kind, "wait", "its waiters are about to be let in");
  assert.deepEqual(roomIn(rested, 2, "b", now), { kind: "evict", ids: ["b"] });
});

test("within its turn an idle model is kept for a moment, for a client that asks again at once", () => {
  const resting = (idle: number): Placed => placed("a", { turn: turned(1_000), lastUsed: now - idle });
  assert.deepEqual(roomIn([resting(10)], 1, null, now), { kind: "wait", yields: null, until: now + 90 });
  assert.deepEqual(roomIn([resting(100)], 1, null, now), { kind: "evict", ids: ["a"] });
});

/** For a model of so many GiB, of which all may take ten. */
function roomOf(takes: number, all: readonly Placed[], yields: string | null = null, isShort = false): Room {
  return roomFor(all, { slots: 9, takes: gib(takes), limits: gib(10), isShort }, yields, now);
}

test("by memory: as many leave as have to and none more, the least recently used first", () => {
  const [a, b, c] = [1, 2, 3].map((at) => placed("abc"[at - 1] ?? "", { lastUsed: at, takes: gib(3) }));
  assert.ok(a && b && c);
  const all = [c, a, b];
  assert.deepEqual(roomOf(1, all), { kind: "free" }, "two that fit together are not swapped");
  assert.deepEqual(roomOf(2, all), { kind: "evict", ids: ["a"] });
  assert.deepEqual(roomOf(5, all), { kind: "evict", ids: ["a", "b"] });
  const small = { ...a, takes: gib(1) };
  assert.deepEqual(roomOf(6, [small, b, c]), { kind: "evict", ids: ["b"] }, "the small one would leave for nothing");
  assert.deepEqual(roomOf(6, [{ ...small, isLeaving: true }, b, c]), { kind: "evict", ids: ["b"] });
  const wait = { kind: "wait", yields: null, until: Number.POSITIVE_INFINITY };
  assert.deepEqual(roomOf(6, [{ ...b, isLeaving: true }, small, c]), wait, "what leaves is enough");
  const nearly = { ...c, takes: gib(4.04) };
  assert.deepEqual(roomOf(6, [{ ...b, isLeaving: true }, nearly]), wait, "40 MiB are nobody's until it is gone");
  assert.deepEqual(roomOf(6, [small, nearly]), { kind: "evict", ids: ["c"] });
  assert.deepEqual(roomOf(10.04, [{ ...b, isLeaving: true }]), wait, "nor is it refused for them");
  assert.deepEqual(roomOf(10.06, [{ ...b, isLeaving: true }]), { kind: "tooLarge" });
  const device = { ...b, takes: new Map([["CUDA0", 9]]) };
  assert.deepEqual(roomOf(6, [a, device]), { kind: "free" }, "each device by itself");
});

test("by memory: what is used yields where idle models are not enough, and pinned models stay", () => {
  const idle = placed("a", { takes: gib(3) });
  const used = placed("b", { takes: gib(3), inFlight: 1, turn: turned(5_000) });
  assert.deepEqual(roomOf(6, [idle, used]), { kind: "evict", ids: ["a"] });
  assert.deepEqual(roomOf(8, [idle, used]), { kind: "evict", ids: ["a"] });
  const yielding = { kind: "wait", yields: "b", until: Number.POSITIVE_INFINITY };
  assert.deepEqual(roomOf(8, [{ ...idle, isLeaving: true }, used]), yielding);
  const within = { ...used, turn: turned(500) };
  assert.deepEqual(roomOf(8, [idle, within]), { kind: "wait", yields: null, until: now + 1_500 });
  const pinned = { ...idle, pinned: true };
  assert.deepEqual(roomOf(8, [pinned, used]), { kind: "tooLarge" });
  assert.deepEqual(roomOf(11, []), { kind: "tooLarge" });
  assert.deepEqual(roomOf(7, [pinned]), { kind: "free" });
});

test("what a load would unload in the end: idle models first, then those in use, and never a pinned one", () => {
  const evicted = (takes: number, all: readonly Placed[], slots = 9): readonly string[] | null =>
    evictedFor(all, { slots, takes: gib(takes), limits: gib(10), isShort: false });
  const idle = placed("a", { takes: gib(3), lastUsed: now });
  const used = placed("b", { takes: gib(3), inFlight: 1, turn: turned(500) });
  assert.deepEqual(evicted(4, [idle, used]), []);
  assert.deepEqual(evicted(6, [used, idle]), ["a"], "also within its turn");
  assert.deepEqual(evicted(8, [used, idle]), ["a", "b"]);
  assert.deepEqual(evicted(1, [used, idle], 2), ["a"], "for a slot");
  assert.deepEqual(evicted(6, [{ ...idle, pinned: true }, used]), ["b"]);
  assert.equal(evicted(8, [{ ...idle, pinned: true }, used]), null);
  assert.equal(evicted(11, []), null);
  assert.deepEqual(evicted(6, [{ ...idle, isLeaving: true }, used]), [], "it leaves already");
});

test("for a list of any length each loaded model is asked once what it takes", () => {
  const ids = Array.from({ length: 5_000 }, (_, index) => `m${index}`);
  const state = new State({ ...limits });
  const asked: string[] = [];
  const memory = { ...unknownMemory, limits: () => gib(10), taken: (id: string) => (asked.push(id), gib(4)) };
  const listed = new Map(ids.map((id, index) => [id, index < 2 ? "loaded" : "unloaded"]));
  state.world = { ...state.world, modelsMax: 9, listed, memory };
  const view = slotsView(state);
  const evicted = ids.map((id) => (view.takes(id) ? "loaded" : view.evicts(id, gib(5))?.join()));
  assert.deepEqual(asked, ["m0", "m1"]);
  assert.deepEqual([evicted[0], new Set(evicted.slice(2))], ["loaded", new Set(["m0"])]);
});

test("a load that ran out of memory waits until what leaves for it is gone", () => {
  const leaving = placed("a", { takes: gib(1), isLeaving: true });
  assert.deepEqual(roomOf(1, [leaving]), { kind: "free" });
  assert.equal(roomOf(1, [leaving], null, true).kind, "wait");
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
        const room = roomIn([place], 1, yields, time);
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
