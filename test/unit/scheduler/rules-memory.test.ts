// The scheduler's rules for memory, in virtual time: README.md of src/scheduler has them.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { long, reasons, states } from "./scenes.ts";
import { Machine } from "./simulated-machine.ts";

type Needs = Readonly<Record<string, number | null | undefined>>;

/** Of ten units of memory and nine model slots. */
function machineWith(needs: Needs): Machine {
  const machine = new Machine(Object.keys(needs));
  for (const [id, need] of Object.entries(needs)) machine.memory.needs.set(id, need);
  Object.assign(machine, { isDoubled: true, slots: 9 });
  machine.memory.most = 10;
  machine.observe();
  return machine;
}

/** Asks one after the other, each once the one before has its answer. */
function askInTurn(machine: Machine, ids: string): void {
  for (const id of ids) {
    const client = machine.ask(id, 1);
    machine.run(10_000);
    assert.equal(client.state, "answered", `${id}: ${client.error?.message}`);
  }
}

function loadedIn(machine: Machine): string {
  return [...machine.processes.keys()].toSorted().join("");
}

describe("memory", () => {
  const cases: readonly [string, Needs, string, string, string][] = [
    ["models that fit together are all loaded once", { a: 3, b: 3, c: 4 }, "abcabcabc", "abc", "abc"],
    ["the least recently used model leaves", { a: 4, b: 4, c: 4 }, "abac", "abc", "ac"],
    ["as many leave as have to", { a: 3, b: 3, c: 3, d: 7 }, "abcd", "abcd", "cd"],
    ["and none more: a small model stays where a large one has to leave", { a: 1, b: 6, c: 6 }, "abc", "abc", "ac"],
    ["of two that do not fit together each is loaded again", { a: 6, b: 5 }, "abab", "abab", "b"],
    ["what cannot be known counts by its slot alone", { a: null, b: 9, c: null }, "abc", "abc", "abc"],
  ];
  for (const [name, needs, asked, loads, left] of cases)
    it(name, () => {
      const machine = machineWith(needs);
      askInTurn(machine, asked);
      assert.deepEqual([machine.loads.join(""), loadedIn(machine)], [loads, left]);
    });

  it("is not the only limit: --models-max stays above it", () => {
    const machine = machineWith({ a: 1, b: 1, c: 1 });
    machine.slots = 2;
    machine.observe();
    askInTurn(machine, "abc");
    assert.equal(loadedIn(machine), "bc");
  });

  it("that never suffices is told at once, also while another model is loaded; beside pinned models, too", () => {
    const machine = machineWith({ a: 5, b: 6, c: 11 });
    machine.pinned.add("a");
    const loads = machine.ask("a", 1);
    machine.run(500);
    const [never, besides] = [machine.ask("c", 1), machine.ask("b", 1)];
    assert.equal(states([loads, never, besides]), "waits rejected rejected");
    assert.deepEqual([never.error?.code, never.error?.status], ["too_large", 507]);
    assert.equal(never.error?.message, "c needs 11 of 5");
    machine.run(10_000);
    assert.equal(machine.ask("b", 1).error?.message, "b needs 6 of 5");
    machine.pinned.clear();
    machine.observe();
    askInTurn(machine, "b");
    assert.deepEqual([machine.loads.join(""), loadedIn(machine)], ["ab", "b"]);
  });

  it("of a model that is being loaded is not taken by others", () => {
    const machine = machineWith({ a: 6, b: 8 });
    const clients = [machine.ask("a", 1)];
    machine.run(500);
    clients.push(machine.ask("b", 1));
    machine.run(20_000);
    assert.equal(states(clients), "answered answered");
  });

  it("that a router left behind is waited for", () => {
    const machine = machineWith({ a: 8 });
    Object.assign(machine.memory, { most: 4, hasLeftovers: true });
    const client = machine.ask("a", 1);
    machine.run(10_000);
    assert.deepEqual([client.state, reasons(machine)], ["waits", [["a", 1, "room"]]]);
    Object.assign(machine.memory, { most: 10, hasLeftovers: false });
    machine.run(10_000);
    assert.equal(client.state, "answered");
  });

  it("that is for a moment nobody's while a model ends: nothing is refused for it, and nobody waits for more than that", () => {
    const machine = machineWith({ a: 7, b: 8, c: 9 });
    askInTurn(machine, "a");
    machine.unloadMs = 3_000;
    const waits = machine.ask("b", 1);
    machine.run(100);
    machine.memory.most = 7.97;
    const late = machine.ask("b", 1);
    const never = machine.ask("c", 1);
    machine.run(100);
    assert.equal(states([waits, late, never]), "waits waits rejected");
    assert.equal(never.error?.code, "too_large");
    machine.run(2_000);
    machine.memory.most = 10;
    machine.run(10_000);
    assert.equal(states([waits, late]), "answered answered");
  });

  it("that ran out in a load whose client has left costs no other model", () => {
    const machine = machineWith({ a: null, b: null });
    askInTurn(machine, "a");
    machine.outcome = "short";
    const client = machine.ask("b", 1);
    machine.run(50);
    machine.leave(client);
    machine.run(10_000);
    assert.deepEqual([client.state, loadedIn(machine)], ["left", "a"]);
  });

  it("is not judged while an edit is on its way", () => {
    const machine = machineWith({ a: 11 });
    machine.isBehind = true;
    machine.observe();
    const client = machine.ask("a", 1);
    machine.run(500);
    assert.equal(client.state, "waits");
    machine.memory.needs.set("a", 4);
    machine.isBehind = false;
    machine.observe();
    machine.run(10_000);
    assert.equal(client.state, "answered");
  });

  it("that is not known yet is waited for, and other models pass", () => {
    const machine = machineWith({ a: undefined, b: 3 });
    const clients = [machine.ask("a", 1), machine.ask("b", 1)];
    machine.run(10_000);
    assert.equal(states(clients), "waits answered");
    machine.memory.needs.set("a", 3);
    machine.observe();
    machine.run(10_000);
    assert.deepEqual([states(clients), machine.loads.join("")], ["answered answered", "ba"]);
  });

  it("in use is not freed before its answers end: their model yields", () => {
    const machine = machineWith({ a: 6, b: 3, c: 9 });
    const [answer, idle] = [machine.ask("a", long), machine.ask("b", 1)];
    machine.run(20_000);
    const waits = machine.ask("c", 1);
    machine.run(10_000);
    const late = machine.ask("a", 1);
    machine.run(10_000);
    assert.equal(states([answer, idle, waits, late]), "answers answered waits waits");
    machine.run(30_000);
    assert.equal(states([answer, waits, late]), "answered answered answered");
    assert.deepEqual([machine.cuts, machine.loads.join("")], [0, "abca"]);
  });

  it("that an unused model gives back counts at once: the next one leaves beside it", () => {
    const machine = machineWith({ a: 3, b: 10, c: 3 });
    machine.rules.set("a", { keepAliveMs: 0 });
    machine.observe();
    askInTurn(machine, "c");
    const [first, waits] = [machine.ask("a", 300), machine.ask("b", 1)];
    machine.run(20_000);
    assert.deepEqual([states([first, waits]), machine.loads.join("")], ["answered answered", "cab"]);
  });

  it("that runs out in a load costs the least recently used idle model and one more load; then it is the model's failure", () => {
    const machine = machineWith({ a: 1, b: 1, c: 1 });
    askInTurn(machine, "ab");
    machine.outcome = "short";
    const client = machine.ask("c", 1);
    machine.runUntil(() => !machine.processes.has("a"), 5_000);
    assert.deepEqual([client.state, loadedIn(machine)], ["waits", "b"], "the second load waits for that");
    machine.outcome = "loads";
    machine.run(10_000);
    assert.deepEqual([client.state, loadedIn(machine)], ["answered", "bc"]);
    machine.crash("c");
    machine.outcome = "short";
    const failed = machine.ask("c", 1);
    machine.run(10_000);
    assert.deepEqual([failed.error?.code, machine.loads.join("")], ["model_load_failed", "abcccc"]);
    assert.equal(loadedIn(machine), "", "b has left for the second try");
  });
});
