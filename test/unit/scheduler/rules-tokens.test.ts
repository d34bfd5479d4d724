// The scheduler's rules for the first token of a process, in virtual time: README.md of src/scheduler has them.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { failingLoads } from "../../../src/scheduler/state/load-backoff.ts";
import { firstTokens } from "../../../src/scheduler/state/tickets.ts";
import { reasons, states } from "./scenes.ts";
import { Machine } from "./simulated-machine.ts";

function started(ids: readonly string[] = ["a", "b"]): Machine {
  const machine = new Machine(ids);
  machine.isDoubled = true;
  return machine;
}

describe("the first token", () => {
  it("is waited for by requests, other loads and drains, and counts to the load", () => {
    const machine = started();
    machine.tokenMs = 5_000;
    const [client, other] = [machine.ask("a", 1), machine.ask("b", 1)];
    machine.run(3_000);
    assert.deepEqual([machine.processes.get("a")?.value, client.state, machine.loads], ["loaded", "waits", ["a"]]);
    assert.deepEqual(reasons(machine), [
      ["a", 1, "load"],
      ["b", 1, "load"],
    ]);
    assert.deepEqual([...firstTokens(machine.state)], [["a", null]]);
    const drain = machine.change(["a"]);
    machine.run(3_900);
    assert.equal(machine.changes.get(drain)?.isDrained, false);
    machine.run(500);
    assert.equal(machine.changes.has(drain), false, "drained once the token is there");
    machine.run(30_000);
    assert.equal(states([client, other]), "answered answered");
  });

  it("of a process that the gateway did not have loaded is asked for too", () => {
    const machine = started();
    machine.token = "refused";
    machine.loadElsewhere("a");
    assert.equal(machine.ask("a", 1).state, "waits");
    machine.run(100);
    assert.equal(machine.processes.size, 0);
    assert.equal(failingLoads(machine.state).get("a")?.message, "it gives no token: 500");
    machine.token = "given";
    machine.loadElsewhere("b");
    machine.run(100);
    assert.equal(machine.ask("b", 1).state, "answers");
    assert.deepEqual([machine.loads, firstTokens(machine.state).get("b")], [[], 10]);
  });

  it("that is refused is a failed load: unloaded, its requests rejected, its model in backoff, its slot free", () => {
    const machine = started();
    machine.token = "refused";
    const client = machine.ask("a", 1);
    machine.run(3_000);
    assert.deepEqual([client.error?.code, machine.processes.size, machine.isReserved], ["model_load_failed", 0, false]);
    assert.equal(client.error?.message, "a could not be loaded: it gives no token: 500");
    assert.deepEqual([machine.ask("a", 1).error?.code, machine.loads.length], ["load_failing", 1]);
    machine.token = "given";
    const other = machine.ask("b", 1);
    machine.run(3_000);
    assert.equal(other.state, "answered");
    machine.run(5_000);
    const again = machine.ask("a", 1);
    machine.run(5_000);
    assert.deepEqual([again.state, failingLoads(machine.state).size], ["answered", 0]);
  });

  it("that never comes is waited for as long as a load may take", () => {
    for (const begin of [(machine: Machine) => machine.ask("a", 1), (machine: Machine) => machine.loadElsewhere("a")]) {
      const machine = started();
      machine.token = "silent";
      begin(machine);
      machine.run(1_000);
      const late = machine.ask("a", 1);
      machine.run(58_000);
      assert.equal(late.state, "waits");
      machine.run(2_000);
      assert.equal(late.error?.code, "model_load_failed");
      assert.match(late.error?.message ?? "", /(no token|not loaded) within 60 s$/);
      assert.equal(machine.processes.size, 0);
    }
  });

  it("that never comes is one failure, told once the process is gone: who asks after it is none of its requests", () => {
    const machine = started();
    machine.token = "silent";
    machine.unloadMs = 10_000;
    const client = machine.ask("a", 1);
    machine.run(65_000);
    assert.equal(client.state, "waits");
    machine.run(6_000);
    assert.equal(client.error?.code, "model_load_failed");
    assert.equal(failingLoads(machine.state).get("a")?.failures, 1);
  });

  it("is asked for again where the connection broke off, and no longer than the process lives", () => {
    const machine = started();
    machine.token = "none";
    const client = machine.ask("a", 1);
    machine.run(4_000);
    assert.equal(client.state, "waits");
    machine.token = "given";
    machine.run(2_000);
    assert.equal(client.state, "answered");

    const dying = started();
    dying.token = "none";
    const waits = dying.ask("a", 1);
    dying.run(2_500);
    dying.isDeaf = true;
    dying.crash("a");
    dying.isDeaf = false;
    dying.token = "given";
    dying.run(5_000);
    assert.deepEqual([waits.state, dying.loads], ["answered", ["a", "a"]]);
  });

  it("that a silent router cannot act on rejects its requests, and the process goes when the router is back", () => {
    const machine = started();
    machine.token = "refused";
    machine.tokenMs = 2_000;
    const client = machine.ask("a", 1);
    machine.run(3_000);
    machine.silenceRouter();
    machine.run(3_000);
    assert.equal(client.error?.code, "model_load_failed");
    assert.equal(machine.ask("a", 1).error?.code, "model_load_failed");
    assert.equal(machine.processes.size, 1);
    machine.unloadFails = true;
    machine.startRouter();
    machine.run(1_500);
    machine.unloadFails = false;
    machine.run(1_500);
    assert.equal(machine.processes.size, 0);
  });

  it("is not waited for by an unload on request", () => {
    const machine = started();
    machine.token = "silent";
    const client = machine.ask("a", 1);
    machine.run(3_000);
    machine.unload("a");
    machine.token = "given";
    machine.run(5_000);
    assert.deepEqual([client.state, machine.loads, failingLoads(machine.state).size], ["answered", ["a", "a"], 0]);
  });
});
