// Gateways beside each other: which are at the same document.
import assert from "node:assert/strict";
import { test } from "node:test";
import { compareReplicas, type Replica, replicaTable, verdictOf } from "../../../src/cli/replica-table.ts";
import type { StatusBody } from "../../../src/client/index.ts";

function replica(url: string, documentHash: string, loaded: readonly string[] = []): Replica {
  const status = {
    gateway: { version: "1.2.3", id: url, ready: true },
    conditions: [],
    sync: "Synced",
    documentHash,
    models: [
      ...loaded.map((id) => ({ id, runtime: { state: "loaded" } })),
      { id: "acme/idle:Q8_0", runtime: { state: "unloaded" } },
      { id: "acme/absent:Q8_0", runtime: null },
    ],
    inFlight: { x: 2, y: 1 },
    waiting: [{ model: "x", requests: 4 }],
  };
  return { url, status: status as unknown as StatusBody };
}

const [one, two] = ["1".repeat(64), "2".repeat(64)];

test("all at the same document, whatever they have loaded", () => {
  const comparison = compareReplicas([replica("http://a", one, ["acme/a:Q8_0"]), replica("http://b", one)]);
  assert.equal(comparison.same, true);
  assert.deepEqual(replicaTable(comparison), [
    ["GATEWAY", "READY", "SYNC", "DOCUMENT", "", "IN FLIGHT", "WAITING", "LOADED"],
    ["http://a", "yes", "Synced", "111111111111", "", "3", "4", "acme/a:Q8_0"],
    ["http://b", "yes", "Synced", "111111111111", "", "3", "4", "–"],
  ]);
  assert.equal(verdictOf(comparison), "All 2 are at document 111111111111.");
});

test("one differs: the one that is alone, wherever it stands", () => {
  const comparison = compareReplicas([replica("http://a", two), replica("http://b", one), replica("http://c", one)]);
  assert.deepEqual([comparison.same, comparison.replicas.map(({ differs }) => differs)], [false, [true, false, false]]);
  assert.equal(verdictOf(comparison), "2 of 3 are at document 111111111111; another document: http://a");
});

test("one is away, one refuses: neither counts as the same", () => {
  const short = {
    gateway: { version: "1", id: "c", ready: true },
    router: { connected: true },
    rpc: { mode: "single" },
  };
  const comparison = compareReplicas([
    replica("http://a", one),
    { url: "http://b", status: { problem: "ECONNREFUSED" } },
    { url: "http://c", status: short as Replica["status"] },
  ]);
  assert.equal(comparison.same, false);
  assert.deepEqual(
    replicaTable(comparison).map((row) => row.at(-1)),
    ["LOADED", "–", "ECONNREFUSED", "needs a license key"],
  );
  assert.equal(verdictOf(comparison), "1 of 3 are at document 111111111111; no answer: http://b, http://c");
});

test("none answers: there is no document to compare with", () => {
  const comparison = compareReplicas([{ url: "http://a", status: { problem: "ETIMEDOUT" } }]);
  assert.deepEqual([comparison.same, comparison.documentHash], [false, null]);
  assert.equal(verdictOf(comparison), "0 of 1 are at document –; no answer: http://a");
});
