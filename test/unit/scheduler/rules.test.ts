// The scheduler's rules one by one, in virtual time: README.md of src/scheduler has them in the same order.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import type { Limits } from "../../../src/scheduler/state/state.ts";
import { failingLoads } from "../../../src/scheduler/state/load-backoff.ts";
import { expiresAt, keepsWaiting, waiting } from "../../../src/scheduler/state/tickets.ts";
import { type Client, type LoadOutcome, Machine } from "./simulated-machine.ts";

const long = 50_000;

/** `a` is loaded and idle, its turn is over. */
function loaded(limits: Partial<Limits> = {}, ids: readonly string[] = ["a", "b", "c"]): Machine {
  const machine = new Machine(ids, limits);
  machine.isDoubled = true;
  machine.ask("a", 1);
  machine.run(10_000);
  assert.deepEqual([...machine.processes.keys()], ["a"]);
  return machine;
}

function states(clients: readonly Client[]): string {
  return clients.map(({ state }) => state).join(" ");
}

function reasons({ state, time }: Machine): (string | number)[][] {
  return waiting(state, time).map((entry) => [entry.model, entry.requests, entry.for]);
}

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
    const clients = [machine.ask("a", long), machine.ask("a", long, 9_000), machine.ask("a", long), machine.ask("a", 1)];
    assert.equal(states(clients), "answers elsewhere answers rejected");
    assert.deepEqual([clients[3]?.error?.code, clients[3]?.error?.retryAfterMs], ["busy", 5_000]);
    assert.match(clients[3]?.error?.message ?? "", /^3 requests for a wait or are being answered \(--queue-limit\)$/);
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

  it("all in use: a request waits, and is rejected after the load timeout", () => {
    const machine = loaded({ loadTimeoutMs: 10_000 });
    machine.ask("a", long);
    const refused = machine.ask("b", 1);
    machine.run(9_990);
    assert.deepEqual(reasons(machine), [["b", 1, "room"]]);
    machine.run(20);
    assert.deepEqual([refused.error?.code, refused.error?.retryAfterMs], ["busy", 30_000]);
    assert.match(refused.error?.message ?? "", /^no room for b within 10 s: each of the 1 places/);
    assert.equal(machine.ask("a", 1).state, "answers", "no model yields for a request that is gone");
  });

  it("all pinned: rejected at once", () => {
    const machine = loaded();
    machine.pinned.add("a");
    machine.observe();
    const refused = machine.ask("b", 1);
    assert.equal(refused.error?.code, "busy");
    assert.match(refused.error?.message ?? "", /by a model that the document pins$/);
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
      assert.match(refused.error?.message ?? "", /^a is not tried for another \d+ s, as loading it failed.*: it broke$/);
      pauses.push(refused.error?.retryAfterMs ?? 0);
      machine.run(pauses.at(-1) ?? 0);
    }
    assert.deepEqual(pauses.slice(0, 4), [5_000, 10_000, 20_000, 40_000]);
    assert.equal(pauses.at(-1), 300_000);
    assert.equal(failingLoads(machine.state).get("a")?.failures, 10);
    assert.equal(machine.loads.length, 11, "only the first one is made twice");
  });

  it("are tried at once after a retry, or with another file; an unknown file changes nothing", () => {
    const machine = new Machine(["a"]);
    machine.outcome = "ends";
    const isRefused = (): boolean => machine.ask("a", 1).error?.code === "load_failing";
    const fail = (): void => {
      machine.ask("a", 1);
      machine.run(4_500);
      assert.equal(isRefused(), true);
    };
    for (const end of [
      () => machine.send({ kind: "retry", id: "a" }),
      () => machine.send({ kind: "retry", id: null }),
      () => machine.file++,
    ]) {
      fail();
      machine.file = 0;
      machine.observe();
      assert.equal(isRefused(), true, "the file is unknown");
      machine.file = 1;
      end();
      machine.observe();
      assert.equal(isRefused(), false);
      machine.run(10_000);
      machine.file = 1;
      machine.send({ kind: "retry", id: null });
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
    machine.isWorkerLost = true;
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

  it("that were given up a moment ago go on where they were, unless another model is in them", () => {
    for (const [models, waits] of [
      [["a"], 10_000],
      [["a", "b"], 20_000],
    ] as const) {
      const machine = loaded();
      machine.ask("a", long);
      machine.change(["a"]);
      machine.run(10_000);
      machine.giveUpChange();
      machine.change(models);
      machine.run(waits - 10);
      assert.equal(machine.cuts, 0);
      machine.run(20);
      assert.equal(machine.cuts, 1);
    }
  });
});

describe("idle models", () => {
  it("are unloaded after their time, which their last request sets, and which goes with the process", () => {
    const machine = loaded({ keepAliveMs: 60_000 });
    assert.equal(expiresAt(machine.state, "a", machine.time), machine.time - 7_989 + 60_000);
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

describe("a shutdown", () => {
  it("rejects all that wait and all that come, and leaves the answers alone", () => {
    const machine = loaded();
    const clients = [machine.ask("a", 5_000), machine.ask("b", 1), machine.ask("a", 1, 100)];
    machine.shutDown();
    assert.equal(states(clients), "answers rejected rejected");
    assert.deepEqual(
      [clients[1]?.error?.code, machine.ask("a", 1).error?.code, machine.ask("a", 1, 5).error?.code],
      ["shutting_down", "shutting_down", "shutting_down"],
    );
    machine.run(200_000);
    assert.deepEqual([clients[0]?.state, machine.processes.size], ["answered", 1]);
  });
});
