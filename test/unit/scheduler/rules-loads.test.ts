// The scheduler's rules for loads, in virtual time: README.md of src/scheduler has them.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import { failingLoads } from "../../../src/scheduler/state/load-backoff.ts";
import type { LoadOutcome } from "./machine-parts.ts";
import { loaded, reasons } from "./scenes.ts";
import { Machine } from "./simulated-machine.ts";

describe("loads", () => {
  const cases: readonly [string, readonly LoadOutcome[], string | null, number][] = [
    ["a process that ends once is loaded again, and no client is told", ["ends", "loads"], null, 2],
    ["one that ends twice is the request's failure", ["ends", "ends"], "model_load_failed", 2],
    ["one that stalls is ended after the load timeout", ["stalls"], "model_load_failed", 1],
    ["a router that refuses is", ["refused"], "router_unavailable", 0],
    ["one that breaks off once is asked again", ["breaksOff", "loads"], null, 1],
    ["one that breaks off always is the request's failure", ["breaksOff"], "router_unavailable", 0],
    ["an event that is lost costs a second", ["deaf"], null, 1],
  ];
  for (const [name, outcomes, code, loads] of cases)
    it(name, () => {
      const machine = new Machine(["a", "b"]);
      machine.isDoubled = true;
      const client = machine.ask("a", 1);
      for (const outcome of outcomes) {
        machine.outcome = outcome;
        const { length } = machine.loads;
        machine.runUntil(() => machine.loads.length > length || client.state !== "waits", 100);
      }
      machine.run(70_000);
      assert.equal(client.error?.code ?? null, code);
      assert.equal(client.state, code === null ? "answered" : "rejected");
      assert.equal(machine.loads.length, loads);
      const other = machine.ask("b", 1);
      machine.outcome = "loads";
      machine.run(10_000);
      assert.equal(other.state, "answered", "another model has the slot then");
    });

  it("that fail are followed by a backoff, twice as long each time, at most five minutes", () => {
    const machine = new Machine(["a"]);
    machine.outcome = "ends";
    machine.loadMs = 1;
    const pauses: number[] = [];
    for (let count = 0; count < 10; count++) {
      const failed = machine.ask("a", 1);
      machine.runUntil(() => failed.state === "rejected", 1_000);
      assert.equal(failed.error?.code, "model_load_failed");
      const refused = machine.ask("a", 1);
      assert.equal(refused.error?.code, "load_failing");
      assert.match(
        refused.error?.message ?? "",
        /^a is not tried for another \d+ s, as loading it failed.*: it broke$/,
      );
      pauses.push(refused.error?.retryAfterMs ?? 0);
      machine.run(pauses.at(-1) ?? 0);
    }
    assert.deepEqual(pauses.slice(0, 4), [5_000, 10_000, 20_000, 40_000]);
    assert.equal(pauses.at(-1), 300_000);
    assert.equal(failingLoads(machine.state).get("a")?.failures, 10);
    assert.equal(machine.loads.length, 11, "only the first one is made twice");
  });

  it("that fail for their settings wait for the last ones that worked, ten seconds, and nobody is told", () => {
    for (const begin of [
      (machine: Machine) => Object.assign(machine, { outcome: "ends", end: { isWorkerLost: false, isFault: true } }),
      (machine: Machine) => Object.assign(machine, { token: "refused" }),
    ]) {
      const machine = new Machine(["a"]);
      machine.isDoubled = true;
      machine.fallbacks.add("a");
      begin(machine);
      const client = machine.ask("a", 1);
      machine.run(10_000);
      assert.deepEqual([client.state, failingLoads(machine.state).size], ["answered", 0]);

      const late = new Machine(["a"]);
      late.fallbacks.add("a");
      late.fallbackMs = 60_000;
      begin(late);
      const waits = late.ask("a", 1);
      late.run(9_000);
      const { length } = late.loads;
      assert.deepEqual([waits.state, reasons(late)], ["waits", [["a", 1, "load"]]]);
      late.run(6_000);
      assert.deepEqual([waits.error?.code, late.loads.length], ["model_load_failed", length]);
    }
  });

  it("that end without a word of the engine's do not wait for other settings", () => {
    const machine = new Machine(["a"]);
    machine.fallbacks.add("a");
    machine.outcome = "ends";
    const client = machine.ask("a", 1);
    machine.run(5_000);
    assert.equal(client.error?.code, "model_load_failed");
  });

  it("are tried at once after a retry, and when the router has read other files or settings", () => {
    for (const end of [
      (machine: Machine) => machine.send({ kind: "retry", id: "a" }),
      (machine: Machine) => machine.send({ kind: "retry", id: null }),
      (machine: Machine) => machine.file++,
    ]) {
      const machine = new Machine(["a"]);
      const isRefused = (): boolean => machine.ask("a", 1).error?.code === "load_failing";
      machine.outcome = "ends";
      machine.ask("a", 1);
      machine.run(4_500);
      machine.observe();
      assert.equal(isRefused(), true);
      end(machine);
      machine.observe();
      assert.equal(isRefused(), false);
    }
  });

  it("wait until an edit has reached the router, at most a second", () => {
    for (const arrives of [true, false]) {
      const machine = new Machine(["a"]);
      machine.isBehind = true;
      machine.observe();
      const client = machine.ask("a", 1);
      machine.run(900);
      assert.equal(machine.loads.length, 0);
      machine.isBehind = !arrives;
      machine.observe();
      machine.run(50);
      assert.equal(machine.loads.length, arrives ? 1 : 0);
      machine.run(10_000);
      assert.equal(client.state, "answered");
    }
  });

  it("of a model that is not listed wait while the cache has it, ten seconds", () => {
    const machine = new Machine([]);
    assert.equal(machine.ask("gone", 1).error?.code, "model_not_found");
    machine.cached.add("new");
    machine.cached.add("never");
    const [soon, never] = [machine.ask("new", 1), machine.ask("never", 1)];
    machine.run(5_000);
    machine.listed.add("new");
    machine.observe();
    machine.run(5_000);
    assert.deepEqual([soon.state, never.error?.code], ["answered", "model_not_found"]);
  });

  it("of a model that is removed meanwhile end with that", () => {
    for (const remove of [
      (machine: Machine) => machine.listed.delete("a"),
      (machine: Machine) => machine.cached.delete("a"),
    ]) {
      const machine = new Machine(["a"]);
      const client = machine.ask("a", 1);
      machine.run(100);
      remove(machine);
      machine.crash("a");
      assert.equal(client.error?.code, "model_not_found");
      assert.match(client.error?.message ?? "", /while it was being loaded$/);
    }
  });

  it("wait for RPC workers that are not ready, and are told when they are", () => {
    const machine = new Machine(["a"]);
    machine.verdict = { kind: "wait" };
    const client = machine.ask("a", 1);
    machine.run(5_000);
    assert.deepEqual(reasons(machine), [["a", 1, "workers"]]);
    machine.verdict = { kind: "ready", stallMs: 3_000 };
    machine.observe();
    machine.run(10);
    assert.deepEqual(machine.loads, ["a"]);
    machine.run(5_000);
    assert.equal(client.state, "answered");
  });

  it("that make no progress on RPC workers are ended, progress keeps them; a lost worker is no failure", () => {
    const machine = new Machine(["a"]);
    machine.verdict = { kind: "ready", stallMs: 3_000 };
    machine.outcome = "stalls";
    machine.end.isWorkerLost = true;
    const client = machine.ask("a", 1);
    machine.run(2_500);
    machine.send({ kind: "progress", id: "a" });
    machine.run(2_500);
    assert.deepEqual(machine.loads, ["a"]);
    machine.outcome = "loads";
    machine.run(600);
    assert.deepEqual(machine.loads, ["a", "a"]);
    machine.run(3_000);
    assert.equal(client.state, "answered");
  });

  it("without enough RPC workers are refused, while a loaded model goes on answering", () => {
    const machine = loaded();
    machine.refusal = new GatewayError("too_few_workers", "1 of the RPC workers can be used");
    machine.observe();
    assert.deepEqual([machine.ask("b", 1).error?.code, machine.ask("a", 1).state], ["too_few_workers", "answers"]);
  });
});

describe("without a router", () => {
  it("a request waits as long as one may take to start; where there will be none it is told why", () => {
    const machine = new Machine(["a"]);
    machine.stopRouter();
    const [late, waits] = [machine.ask("a", 1), machine.ask("b", 1)];
    machine.run(29_000);
    assert.deepEqual(reasons(machine), [
      ["a", 1, "router"],
      ["b", 1, "router"],
    ]);
    machine.leave(waits);
    machine.run(1_000);
    assert.equal(late.error?.code, "router_unavailable");
    machine.engineProblem = new GatewayError("engine_missing", "no llama-server was found");
    machine.observe();
    assert.equal(machine.ask("a", 1).error?.code, "engine_missing");
  });

  it("that answers, a loaded model is granted all the same, and the next router is waited for in a load", () => {
    const machine = loaded();
    machine.silenceRouter();
    assert.equal(machine.ask("a", 1).state, "answers");
    machine.startRouter();
    machine.run(100);
    const client = machine.ask("b", 1);
    machine.run(100);
    machine.stopRouter();
    machine.run(5_000);
    machine.startRouter();
    machine.run(5_000);
    assert.equal(client.state, "answered");
  });
});
