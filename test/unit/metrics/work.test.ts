// Counters of what the controllers do, from what the executor, the router's list and the passes report.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import { createWorkMeters } from "../../../src/metrics/work.ts";
import type { Action } from "../../../src/plan/actions.ts";

const common = { reason: "R", message: "m", disrupts: [] };
const reload: Action = { ...common, kind: "router.reload", key: "router", changes: [] };
const start: Action = { ...common, kind: "router.start", key: "router" };
const pull: Action = { ...common, kind: "model.pull", key: "model/a", model: "a", revision: undefined };
const asImport: Action = { ...common, kind: "model.import", key: "model/b", model: "b", source: "./b.gguf" };
const none = { removed: null, collected: null, seen: null };

test("actions by kind and outcome; only those that succeed have a duration", () => {
  const work = createWorkMeters();
  work.settled({ ...none, action: reload, ms: 2_000, error: null });
  work.settled({ ...none, action: reload, ms: 9, error: new GatewayError("engine_failed", "x") });
  work.settled({ ...none, action: reload, ms: 9, error: new GatewayError("cancelled", "x") });
  work.settled({ ...none, action: reload, ms: 9, error: new GatewayError("shutting_down", "x") });
  const meter = work.actions().get("router.reload");
  assert.deepEqual([meter?.succeeded, meter?.failed, meter?.cancelled, meter?.duration.sum], [1, 1, 2, 2]);
});

test("restarts: each start of the router after its first one", () => {
  const work = createWorkMeters();
  assert.equal(work.totals().routerStarts, 0);
  for (let count = 0; count < 3; count++) work.settled({ ...none, action: start, ms: 1, error: null });
  assert.equal(work.totals().routerStarts, 3);
});

test("bytes of pulls: what came in, without what was there before; an import brings none", () => {
  const work = createWorkMeters();
  const at = (phase: string, completed: number) => ({ phase, completed, total: 100 });
  work.progressed(pull, at("resolving", 0));
  work.progressed(pull, at("downloading", 40));
  work.progressed(pull, at("downloading", 70));
  work.progressed(pull, at("downloading", 100));
  work.progressed(pull, at("verifying", 100));
  work.progressed(asImport, at("importing", 50));
  assert.equal(work.totals().pullBytes, 60);
  work.settled({ ...none, action: pull, ms: 1, error: null });
  // It is pulled again, from the start.
  work.progressed(pull, at("downloading", 0));
  work.progressed(pull, at("downloading", 5));
  assert.equal(work.totals().pullBytes, 65);
});

test("a file that is begun again takes nothing back", () => {
  const work = createWorkMeters();
  for (const completed of [0, 60, 10, 30]) work.progressed(pull, { phase: "downloading", completed, total: 100 });
  assert.equal(work.totals().pullBytes, 80);
});

test("loads and unloads follow the processes, whatever ended them", () => {
  const work = createWorkMeters();
  const listed = (processes: Readonly<Record<string, string>>): void => work.listed(new Map(Object.entries(processes)));
  listed({ a: "http://127.0.0.1:1" });
  listed({ a: "http://127.0.0.1:1" });
  listed({ a: "http://127.0.0.1:1", b: "http://127.0.0.1:2" });
  // Another process of the same model.
  listed({ a: "http://127.0.0.1:3", b: "http://127.0.0.1:2" });
  listed({});
  work.loadFailed("c");
  const rows = [...work.loads()].map(([id, { succeeded, failed, unloads }]) => [id, succeeded, failed, unloads]);
  assert.deepEqual(rows, [
    ["a", 2, 0, 2],
    ["b", 1, 0, 1],
    ["c", 0, 1, 0],
  ]);
  work.keep(new Set(["b"]));
  assert.deepEqual([...work.loads().keys()], ["b"]);
});
