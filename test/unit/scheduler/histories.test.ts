// Random histories of requests, failures and changes against named properties. The machine checks the safety properties at
// every step; here is what must hold at the end.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { GatewayError } from "../../../src/core/errors.ts";
import type { ModelRules } from "../../../src/scheduler/state/world.ts";
import type { LoadOutcome, TokenOutcome } from "./machine-parts.ts";
import { requireBoundedWait } from "./safety.ts";
import { Machine } from "./simulated-machine.ts";

const runs = Number(process.env["HISTORIES"] ?? 2_000);
const ids = ["a", "b", "c"] as const;
const outcomes: readonly LoadOutcome[] = ["loads", "ends", "loads", "stalls", "refused", "breaksOff", "deaf", "short"];
const tokens: readonly TokenOutcome[] = ["given", "refused", "none", "silent"];
const refusal = new GatewayError("too_few_workers", "too few");

/** One step of a history: what happens, to which model, how long. Small numbers are plain requests. */
const step = fc.nat({ max: 0xff_ffff });

interface Start {
  readonly isDoubled: boolean;
  readonly slots: number;
  readonly isPinned: boolean;
  readonly memory: number;
  /** Of the models in their order; 0: not known. */
  readonly needs: readonly number[];
  readonly rules: readonly ModelRules[];
}

const rules: fc.Arbitrary<readonly ModelRules[]> = fc.array(
  fc.record(
    {
      keepAliveMs: fc.constantFrom(0, 5_000, Number.POSITIVE_INFINITY),
      queueLimit: fc.integer({ min: 1, max: 5 }),
      priority: fc.integer({ min: -10, max: 10 }),
    },
    { requiredKeys: [] },
  ),
  { maxLength: 3 },
);

const start = fc.record({
  isDoubled: fc.boolean(),
  slots: fc.integer({ min: 1, max: 3 }),
  isPinned: fc.boolean(),
  memory: fc.integer({ min: 2, max: 9 }),
  needs: fc.array(fc.nat({ max: 4 }), { minLength: 3, maxLength: 3 }),
  rules,
});

function perform(machine: Machine, code: number): void {
  const id = ids[(code >> 5) % ids.length] ?? "a";
  const amount = (code >> 8) & 0xff;
  const client = machine.clients[machine.clients.length - 1 - (amount % 8)];
  switch (code & 31) {
    case 7:
      if (amount % 4 === 0) machine.memory.most = 1 + ((amount >> 2) % 9);
      else machine.memory.needs.set(id, [undefined, null, 1, 2, 3, 4, 5, 6][(amount >> 2) % 8]);
      machine.memory.hasLeftovers = amount % 16 === 1;
      return machine.observe();
    case 8:
      if (amount % 2 === 0) machine.token = tokens[(amount >> 1) % tokens.length] ?? "given";
      machine.tokenMs = 1 + amount * 20;
      return;
    case 9:
      return machine.loadElsewhere(id);
    case 10:
    case 11:
      return machine.leave(client);
    case 12:
      return machine.crash(id);
    case 13:
      if (amount % 3 === 0) machine.silenceRouter();
      else machine.stopRouter();
      return machine.after(amount * 200, () => machine.startRouter());
    case 14:
      machine.outcome = outcomes[amount % outcomes.length] ?? "loads";
      return;
    case 15:
      return void machine.change(amount % 4 === 0 ? "all" : amount % 2 === 0 ? [id] : [id, "a"]);
    case 16:
      return machine.giveUpChange();
    case 17:
      return machine.unload(id);
    case 18:
      return machine.send({ kind: "keep", id, keepMs: amount % 3 === 0 ? 0 : amount * 100 });
    case 19:
      if (!machine.pinned.delete(id)) machine.pinned.add(id);
      return machine.observe();
    case 20:
      machine.slots = 1 + (amount % 3);
      return machine.observe();
    case 21:
      if (!machine.listed.delete(id)) machine.listed.add(id);
      machine.processes.delete(id);
      if (amount % 2 === 0) machine.cached.delete(id);
      else machine.cached.add(id);
      return machine.observe();
    case 22:
      machine.isDeaf = amount % 2 === 0;
      return;
    case 23:
      return machine.send({ kind: "retry", id: amount % 2 === 0 ? null : id });
    case 24:
      machine.verdict =
        amount % 3 === 0 ? { kind: "wait" } : { kind: "ready", stallMs: amount % 3 === 1 ? 5_000 : Infinity };
      return;
    case 25:
      machine.refusal = amount % 2 === 0 ? refusal : null;
      return machine.observe();
    case 26:
      machine.end = { isWorkerLost: amount % 2 === 0, isFault: amount % 3 === 0 };
      if (amount % 5 === 0) machine.fallbacks.add(id);
      machine.fallbackMs = amount * 100;
      return;
    case 27:
      machine.unloadFails = amount % 2 === 0;
      return;
    case 28:
      machine.file++;
      return machine.observe();
    case 29:
      return void machine.ask(id, amount, 1 + amount * 10);
    case 30:
      machine.loadMs = 1 + amount * amount;
      return;
    case 31:
      return machine.run(amount * 300);
    default:
      machine.ask(id, amount % 16 === 15 ? 60_000 : amount * 8);
  }
}

/** Plays a history and then checks what has come of it; an error has the end of the history's log. */
function play(
  steps: readonly number[],
  { isDoubled, slots, isPinned, memory, needs, rules }: Start,
  check: (machine: Machine) => void,
): void {
  const machine = new Machine(ids, { queueLimit: 3 });
  Object.assign(machine, { isDoubled, slots });
  machine.memory.most = memory;
  for (const [index, id] of ids.entries()) machine.memory.needs.set(id, needs[index] || null);
  if (isPinned) machine.pinned.add("a");
  for (const [index, rule] of rules.entries()) machine.rules.set(ids[index] ?? "a", rule);
  machine.observe();
  try {
    for (const code of steps) {
      machine.run((code >> 16) * 4);
      perform(machine, code);
    }
    check(machine);
  } catch (error) {
    throw new Error(`${String(error)}\n${machine.log.text()}`, { cause: error });
  }
}

/** No new requests, no new failures: what has begun ends. */
function calm(machine: Machine): void {
  Object.assign(machine, {
    isReady: true,
    isDeaf: false,
    end: { isWorkerLost: false, isFault: false },
    unloadFails: false,
    outcome: "loads",
    token: "given",
    verdict: { kind: "ready", stallMs: Number.POSITIVE_INFINITY },
    refusal: null,
  });
  machine.memory.hasLeftovers = false;
  for (const [id, need] of machine.memory.needs) machine.memory.needs.set(id, need ?? null);
  machine.pinned.clear();
  // Models that stay for ever would be left.
  for (const [id, rule] of machine.rules) machine.rules.set(id, { ...rule, keepAliveMs: 1_000 });
  machine.observe();
  // The reconcile loop reads the list now and then, so a load that was given up does not stay unseen.
  machine.after(100_000, () => machine.observe());
}

test("no request waits for ever: in a quiet world each one is granted, rejected or has left, and nothing is remembered", () => {
  const history = fc.array(step, { maxLength: 40 });
  fc.assert(
    fc.property(history, start, (steps, begun) => {
      play(steps, begun, (machine) => {
        calm(machine);
        machine.run(1_000_000);
        assert.deepEqual([...machine.active], [], "every request is settled");
        assert.equal(machine.isReserved, false, "no worker stays reserved");
        const loaded = [...machine.processes].filter(([, { value }]) => value === "loaded");
        assert.deepEqual(loaded, [], "every idle model is unloaded");
        machine.send({ kind: "retry", id: null });
        const { models, drains, load, yielding, wakeAt } = machine.state;
        assert.deepEqual(
          { models: models.size, drains: drains.size, load, yielding, wakeAt },
          { models: 0, drains: 0, load: null, yielding: null, wakeAt: Infinity },
        );
      });
    }),
    { numRuns: runs, includeErrorInReport: true },
  );
});

test("with one slot and models that are always asked for, each has its turns, and half of the time is answers", () => {
  const setting = fc.record({
    models: fc.integer({ min: 2, max: 4 }),
    clients: fc.integer({ min: 1, max: 4 }),
    loadMs: fc.integer({ min: 1, max: 30_000 }),
    answersPerTurn: fc.integer({ min: 1, max: 20 }),
  });
  fc.assert(
    fc.property(setting, ({ models, clients, loadMs, answersPerTurn }) => {
      const answerMs = Math.ceil(Math.max(1_000, loadMs) / answersPerTurn);
      const asked = ["a", "b", "c", "d"].slice(0, models);
      const machine = new Machine(asked, { loadTimeoutMs: 600_000 });
      machine.loadMs = loadMs;
      const counts = new Map(asked.map((id) => [id, 0]));
      machine.onSettled = ({ ticket: { id } }) => {
        counts.set(id, (counts.get(id) ?? 0) + 1);
        // A client needs a moment for its next request, shorter than an idle model lingers.
        machine.after(10, () => machine.ask(id, answerMs));
      };
      for (const id of asked) for (let count = 0; count < clients; count++) machine.ask(id, answerMs);
      machine.runUntil(() => machine.loads.length > 4 * models, 6_000_000);
      const elapsed = machine.time - 1_000_000 - 2 * loadMs;
      const share = machine.answering / elapsed;
      assert.ok(share >= 0.49 - 10 / (answerMs + 10), `${Math.round(100 * share)} % of the time is answers`);
      for (const [index, id] of machine.loads.entries()) assert.equal(id, asked[index % models], "in turn");
      const [fewest, most] = [Math.min(...counts.values()), Math.max(...counts.values())];
      assert.ok(fewest > 0 && most <= 2 * fewest + 5 * clients, [...counts].join(" "));
    }),
    { numRuns: 100, includeErrorInReport: true },
  );
});

test("a model is passed only by those of a higher priority, and by none that comes later than its bound", () => {
  const asked = ["a", "b", "c", "d"];
  const arrival = fc.record({
    id: fc.constantFrom(...asked),
    afterMs: fc.integer({ min: 0, max: 20_000 }),
    answerMs: fc.integer({ min: 1, max: 40_000 }),
  });
  const setting = fc.record({
    priorities: fc.array(fc.integer({ min: -10, max: 10 }), { minLength: 4, maxLength: 4 }),
    slots: fc.integer({ min: 1, max: 2 }),
    loadMs: fc.integer({ min: 1, max: 8_000 }),
    arrivals: fc.array(arrival, { minLength: 4, maxLength: 60 }),
  });
  fc.assert(
    fc.property(setting, ({ priorities, slots, loadMs, arrivals }) => {
      const machine = new Machine(asked, { loadTimeoutMs: 120_000 });
      Object.assign(machine, { slots, loadMs });
      for (const [index, id] of asked.entries()) machine.rules.set(id, { priority: priorities[index] ?? 0 });
      machine.observe();
      machine.onLoad = (id) => {
        const waiting = asked.filter((other) => other !== id && !machine.loaded.has(other));
        requireBoundedWait(
          machine,
          id,
          waiting.filter((other) => machine.state.slotOrder.has(other)),
        );
      };
      for (const { id, afterMs, answerMs } of arrivals) {
        machine.run(afterMs);
        machine.ask(id, answerMs);
      }
      machine.run(10_000_000);
      assert.deepEqual([...machine.active], [], "every request is settled");
    }),
    { numRuns: 400, includeErrorInReport: true },
  );
});

test("models that are always asked for, of any priorities: each has a slot within its bound, and none is turned away", () => {
  const setting = fc.record({
    priorities: fc.array(fc.integer({ min: -10, max: 10 }), { minLength: 2, maxLength: 4 }),
    loadMs: fc.integer({ min: 1, max: 10_000 }),
    answerMs: fc.integer({ min: 1_000, max: 5_000 }),
  });
  fc.assert(
    fc.property(setting, ({ priorities, loadMs, answerMs }) => {
      const asked = ["a", "b", "c", "d"].slice(0, priorities.length);
      const machine = new Machine(asked, { loadTimeoutMs: 600_000 });
      machine.loadMs = loadMs;
      for (const [index, id] of asked.entries()) machine.rules.set(id, { priority: priorities[index] ?? 0 });
      machine.observe();
      const highest = Math.max(...priorities);
      // A model's time in the slot: its load, its turn, its last answer, and the moments between.
      const stayMs = loadMs + Math.max(1_000, loadMs) + answerMs + 2_000;
      machine.onLoad = (id) => {
        const waitedMs = machine.time - (machine.state.slotOrder.get(id) ?? 0);
        const behind = highest - (machine.rules.get(id)?.priority ?? 0);
        const bound = behind * 15_000 + asked.length * stayMs;
        assert.ok(waitedMs <= bound, `${id}, ${behind} levels behind, waited ${waitedMs} ms of ${bound}`);
      };
      machine.onSettled = ({ ticket: { id }, error }) => {
        assert.equal(error, null);
        machine.after(10, () => machine.ask(id, answerMs));
      };
      for (const id of asked) machine.ask(id, answerMs);
      machine.run(1_500_000);
      assert.deepEqual(new Set(machine.loads), new Set(asked));
      assert.ok(machine.clients.every(({ state }) => state !== "rejected"));
    }),
    { numRuns: 25, includeErrorInReport: true },
  );
});
