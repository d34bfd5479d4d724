// The scheduler's rules for requests and model slots, in virtual time: README.md of src/scheduler has them.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { keepsWaiting, waiting } from "../../../src/scheduler/state/tickets.ts";
import { loaded, long, reasons, states } from "./scenes.ts";
import { Machine } from "./simulated-machine.ts";

describe("requests", () => {
  it("for a loaded model are granted at once, as many as twice its slots and at least eight; the rest in their order", () => {
    for (const [parallel, atOnce] of [
      [1, 8],
      [4, 8],
      [6, 12],
    ] as const) {
      const machine = new Machine(["a"], { queueLimit: 50 });
      machine.parallel = parallel;
      const clients = Array.from({ length: 20 }, () => machine.ask("a", 100));
      machine.run(2_050);
      assert.equal(clients.filter(({ state }) => state === "answers").length, atOnce);
      assert.deepEqual(reasons(machine), [["a", 20 - atOnce, "turn"]]);
      machine.run(100);
      assert.equal(clients.filter(({ state }) => state === "answered").length, atOnce);
    }
  });

  it("beyond the queue limit are rejected, waiting and in flight together, for each model by itself", () => {
    const machine = loaded({ queueLimit: 3 });
    machine.slots = 2;
    machine.observe();
    const clients = [
      machine.ask("a", long),
      machine.ask("a", long, 9_000),
      machine.ask("a", long),
      machine.ask("a", 1),
    ];
    assert.equal(states(clients), "answers elsewhere answers rejected");
    assert.deepEqual([clients[3]?.error?.code, clients[3]?.error?.retryAfterMs], ["busy", 5_000]);
    assert.match(clients[3]?.error?.message ?? "", /^3 requests for a are queued or running \(--queue-limit\)$/);
    assert.equal(machine.ask("b", 1).state, "waits");
    machine.leave(clients[1]);
    assert.equal(machine.ask("a", 1).state, "answers");
  });

  it("that have waited for something else before keep their place in the order", () => {
    const machine = new Machine(["a"]);
    machine.loadMs = 20_000;
    const sized = machine.ask("a", 1, 5_000);
    const other = machine.ask("a", 1);
    machine.run(6_000);
    assert.deepEqual(machine.state.models.get("a")?.queue, [sized.ticket, other.ticket]);
  });

  it("of clients that left load nothing and evict nothing", () => {
    const machine = loaded();
    const stays = machine.ask("a", 20_000);
    const leaves = machine.ask("b", 1);
    machine.run(5_000);
    assert.deepEqual(reasons(machine), [["b", 1, "room"]]);
    machine.leave(leaves);
    assert.deepEqual(reasons(machine), []);
    machine.run(60_000);
    assert.deepEqual([stays.state, machine.loads], ["answered", ["a"]]);
  });

  it("tell for what they wait, those that have waited longest first", () => {
    const machine = loaded();
    machine.ask("a", long);
    machine.ask("b", 1);
    machine.run(500);
    machine.ask("b", 1);
    machine.ask("c", 1, 9_000);
    machine.run(500);
    assert.deepEqual(waiting(machine.state, machine.time), [
      { model: "b", requests: 2, oldestMs: 1_000, for: "room" },
      { model: "c", requests: 1, oldestMs: 500, for: "size" },
    ]);
    assert.deepEqual(
      ["a", "b", "c"].map((id) => keepsWaiting(machine.state, id, { slots: 1 })),
      [true, true, true],
      "any process is in the way of a request that waits for a slot",
    );
  });
});

describe("model slots", () => {
  it("are given in the order in which models began to wait for one", () => {
    const machine = loaded();
    const [a, b, c] = [machine.ask("a", 20_000), machine.ask("b", 20_000), machine.ask("c", 1)];
    machine.run(3_000);
    const again = machine.ask("a", 1);
    machine.run(100_000);
    assert.deepEqual(machine.loads, ["a", "b", "c", "a"]);
    assert.equal(states([a, b, c, again]), "answered answered answered answered");
  });

  it("lost while requests still wait put the model at the end", () => {
    const machine = new Machine(["a", "b", "c"], { queueLimit: 50 });
    for (let count = 0; count < 40; count++) machine.ask("a", 3_000);
    machine.run(2_100);
    machine.ask("b", 1);
    machine.ask("c", 1);
    machine.run(60_000);
    assert.deepEqual(machine.loads, ["a", "b", "c", "a"]);
  });

  it("all in use: a request waits, and is rejected after the load timeout", () => {
    const machine = loaded({ loadTimeoutMs: 10_000 });
    machine.ask("a", long);
    const refused = machine.ask("b", 1);
    machine.run(9_990);
    assert.deepEqual(reasons(machine), [["b", 1, "room"]]);
    machine.run(20);
    assert.deepEqual([refused.error?.code, refused.error?.retryAfterMs], ["busy", 30_000]);
    assert.match(refused.error?.message ?? "", /^no model slot for b within 10 s: --models-max is 1,/);
    assert.equal(machine.ask("a", 1).state, "answers", "no model yields for a request that is gone");
  });

  it("all pinned: rejected at once", () => {
    const machine = loaded();
    machine.pinned.add("a");
    machine.observe();
    const refused = machine.ask("b", 1);
    assert.equal(refused.error?.code, "busy");
    assert.match(refused.error?.message ?? "", /all hold pinned models$/);
  });

  it("of a model that yields: it admits no new request, and its answers end by themselves", () => {
    const machine = loaded();
    const [answer, other, late] = [machine.ask("a", 5_000), machine.ask("b", 1), machine.ask("a", 1)];
    assert.equal(states([answer, other, late]), "answers waits waits");
    machine.run(5_001);
    assert.equal(states([answer, other, late]), "answered waits waits");
    machine.run(20_000);
    assert.equal(states([other, late]), "answered answered");
    assert.deepEqual(machine.loads, ["a", "b", "a"]);
  });

  it("shrinking in number while the workers are checked stop the load that would be one too many", () => {
    const machine = loaded();
    machine.slots = 2;
    machine.observe();
    machine.ask("a", long);
    const other = machine.ask("b", 1);
    machine.slots = 1;
    machine.observe();
    machine.run(1_000);
    assert.deepEqual([other.state, machine.loads], ["waits", ["a"]]);
  });

  it("held by a load that was given up are made free", () => {
    const machine = new Machine(["a", "b"]);
    machine.outcome = "stalls";
    machine.ask("a", 1);
    machine.run(1_000);
    machine.silenceRouter();
    machine.leave(machine.clients[0]);
    machine.startRouter();
    machine.outcome = "loads";
    const other = machine.ask("b", 1);
    machine.run(5_000);
    assert.equal(other.state, "answered");
  });
});

describe("a shutdown", () => {
  it("rejects all that wait and all that come, and leaves the answers alone", () => {
    const machine = loaded();
    const clients = [machine.ask("a", 5_000), machine.ask("b", 1), machine.ask("a", 1, 100)];
    machine.send({ kind: "shutdown" });
    assert.equal(states(clients), "answers rejected rejected");
    assert.deepEqual(
      [clients[1]?.error?.code, machine.ask("a", 1).error?.code, machine.ask("a", 1, 5).error?.code],
      ["shutting_down", "shutting_down", "shutting_down"],
    );
    machine.run(200_000);
    assert.deepEqual([clients[0]?.state, machine.processes.size], ["answered", 1]);
  });
});
