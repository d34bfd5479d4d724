// The scheduler's rules for drains and idle models, in virtual time: README.md of src/scheduler has them.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { expiresAt } from "../../../src/scheduler/state/tickets.ts";
import { loaded, long, reasons, states } from "./scenes.ts";
import { Machine } from "./simulated-machine.ts";

describe("drains", () => {
  it("keep requests back, wait for answers and loads, and let in again; other models are served", () => {
    const machine = loaded();
    machine.slots = 2;
    machine.observe();
    const [answer, loads] = [machine.ask("a", 5_000), machine.ask("b", 1)];
    machine.run(20);
    const drain = machine.change(["a", "b"]);
    const late = machine.ask("a", 1);
    assert.deepEqual(reasons(machine), [
      ["b", 1, "drain"],
      ["a", 1, "drain"],
    ]);
    machine.run(4_900);
    assert.equal(machine.changes.get(drain)?.isDrained, false);
    machine.run(10_000);
    assert.equal(states([answer, loads, late]), "answered answered answered");
    assert.equal(machine.cuts, 0);
  });

  it("of a model that is being loaded wait for its load", () => {
    const machine = new Machine(["a"]);
    const client = machine.ask("a", 1);
    machine.run(100);
    const drain = machine.change(["a"]);
    machine.run(1_800);
    assert.equal(machine.changes.get(drain)?.isDrained, false);
    machine.run(10_000);
    assert.deepEqual([client.state, machine.loads], ["answered", ["a", "a"]]);
  });

  it("cut what outlasts them, and count it; one that is given up cuts nothing", () => {
    const machine = loaded();
    const answer = machine.ask("a", long);
    machine.change(["a"]);
    machine.run(10_000);
    machine.giveUpChange();
    machine.run(40_000);
    assert.deepEqual([answer.state, machine.cuts], ["answered", 0]);
    machine.ask("a", long);
    machine.change("all");
    machine.run(19_900);
    assert.equal(machine.cuts, 0);
    machine.run(200);
    assert.equal(machine.cuts, 1);
  });
});

describe("idle models", () => {
  it("are unloaded after their time, which their last request sets, and which goes with the process", () => {
    const machine = loaded({ keepAliveMs: 60_000 });
    assert.equal(expiresAt(machine.state, "a", machine.time), machine.time - 7_979 + 60_000);
    const answer = machine.ask("a", 1_000);
    machine.send({ kind: "keep", id: "a", keepMs: 2_000 });
    machine.run(2_900);
    assert.deepEqual([answer.state, machine.processes.size], ["answered", 1]);
    machine.run(200);
    assert.equal(machine.processes.size, 0);
    machine.ask("a", 1);
    machine.run(50_000);
    assert.equal(machine.processes.size, 1, "the default is in force again");
    machine.run(20_000);
    assert.equal(machine.processes.size, 0);
  });

  it("stay loaded while they are pinned or held, and are tried again where the router did not unload them", () => {
    const machine = loaded();
    machine.pinned.add("a");
    machine.send({ kind: "keep", id: "a", keepMs: 0 });
    machine.run(30_000);
    assert.deepEqual([machine.processes.size, expiresAt(machine.state, "a", 0)], [1, null]);
    machine.pinned.clear();
    machine.unloadFails = true;
    machine.observe();
    machine.run(60_000);
    assert.equal(machine.processes.size, 1);
    machine.unloadFails = false;
    machine.run(2_000);
    assert.equal(machine.processes.size, 0);
  });

  it("have their time also where the client has left before the load ended", () => {
    const machine = new Machine(["a"], { keepAliveMs: 5_000 });
    const client = machine.ask("a", 1);
    machine.run(100);
    machine.leave(client);
    machine.run(3_000);
    assert.equal(machine.processes.size, 1);
    machine.run(5_000);
    assert.equal(machine.processes.size, 0);
  });

  it("may be unloaded on request, which ends a load as well; requests wait, and are loaded for again", () => {
    const machine = loaded();
    const answer = machine.ask("a", long);
    machine.unload("a");
    const next = machine.ask("a", 1);
    assert.deepEqual(reasons(machine), [["a", 1, "drain"]]);
    machine.run(1_000);
    machine.unload("a");
    machine.run(10_000);
    assert.equal(next.state, "answered");
    assert.deepEqual(machine.loads, ["a", "a", "a"], "an unload is no failure of the model");
    assert.equal(answer.state, "answers");
  });
});
