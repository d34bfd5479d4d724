// What the document sets for one model: how long it stays loaded, how many requests it takes, and who gets a model slot first.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import type { ModelRules } from "../../../src/scheduler/state/world.ts";
import { loaded, long, states } from "./scenes.ts";
import type { Machine } from "./simulated-machine.ts";

function set(machine: Machine, rules: Readonly<Record<string, ModelRules>>): void {
  machine.rules.clear();
  for (const [id, rule] of Object.entries(rules)) machine.rules.set(id, rule);
  machine.observe();
}

describe("priority", () => {
  it("decides who gets a slot that becomes free, and the order of waiting among equals", () => {
    const machine = loaded();
    set(machine, { c: { priority: 1 } });
    machine.ask("a", 8_000);
    machine.run(1_000);
    const clients = [machine.ask("b", 1), machine.ask("c", 1)];
    machine.run(60_000);
    assert.deepEqual(machine.loads, ["a", "c", "b"]);
    assert.equal(states(clients), "answered answered");
  });

  it("takes no slot back from the model that it was made free for", () => {
    const machine = loaded();
    set(machine, { a: { priority: 10 }, b: { priority: -10 } });
    machine.ask("a", 3_000);
    machine.ask("b", 1);
    const again = machine.ask("a", 1);
    machine.run(60_000);
    assert.deepEqual(machine.loads, ["a", "b", "a"]);
    assert.equal(again.state, "answered");
  });

  it("counts as much as waiting for a fortieth of the load timeout: one that comes later than that waits behind", () => {
    for (const [laterMs, order] of [
      [5_900, ["a", "c", "b"]],
      [6_100, ["a", "b", "c"]],
    ] as const) {
      const machine = loaded({ loadTimeoutMs: 60_000 });
      set(machine, { c: { priority: 4 } });
      machine.ask("a", 20_000);
      machine.ask("b", 1);
      machine.run(laterMs);
      machine.ask("c", 1);
      machine.run(60_000);
      assert.deepEqual(machine.loads, order);
    }
  });
});

describe("maxQueue", () => {
  it("takes the place of the queue limit, for its model alone", () => {
    const machine = loaded({ queueLimit: 3 });
    set(machine, { a: { queueLimit: 1 }, b: { queueLimit: 5 } });
    const clients = [machine.ask("a", long), machine.ask("a", 1)];
    assert.equal(states(clients), "answers rejected");
    assert.deepEqual([clients[1]?.error?.code, clients[1]?.error?.retryAfterMs], ["busy", 5_000]);
    assert.match(clients[1]?.error?.message ?? "", /^1 requests for a are queued or running \(its maxQueue\)$/);
    const others = Array.from({ length: 6 }, () => machine.ask("b", 1));
    assert.equal(states(others), "waits waits waits waits waits rejected");
  });
});

describe("keepAlive", () => {
  it("ends the time of an idle model, at once after an edit; one that a request has set stays", () => {
    const machine = loaded({ keepAliveMs: Number.POSITIVE_INFINITY });
    machine.slots = 2;
    machine.observe();
    machine.ask("b", 1);
    machine.run(10_000);
    machine.send({ kind: "keep", id: "b", keepMs: 90_000 });
    set(machine, { a: { keepAliveMs: 5_000 }, b: { keepAliveMs: 5_000 } });
    machine.run(4_900);
    assert.deepEqual([...machine.processes.keys()], ["a", "b"]);
    machine.run(200);
    assert.deepEqual([...machine.processes.keys()], ["b"]);
    machine.run(85_000);
    assert.deepEqual([...machine.processes.keys()], []);
    machine.ask("b", 1);
    machine.run(2_100);
    assert.deepEqual([...machine.processes.keys()], ["b"], "the next process has the time of the document");
    machine.run(5_000);
    assert.deepEqual([...machine.processes.keys()], []);
  });

  it("of a model may be for ever where others leave", () => {
    const machine = loaded({ keepAliveMs: 20_000 });
    set(machine, { a: { keepAliveMs: Number.POSITIVE_INFINITY } });
    machine.ask("a", 1);
    machine.run(500_000);
    assert.deepEqual([...machine.processes.keys()], ["a"]);
  });
});
