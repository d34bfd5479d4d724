// What is said of the workers: of each, and of all together.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Verdict } from "../../../src/plan/worker-verdict.ts";
import { wantedWorkers } from "../../../src/plan/workers.ts";
import { workerFindings, workersReady } from "../../../src/status/worker-conditions.ts";
import { desiredFrom, workersOf } from "../plan/world.ts";

const [a, b] = ["10.0.0.1:1", "10.0.0.2:1"];

const router = { models: { state: "known", value: [] }, loadedPreset: null } as const;

function said(rpc: object, verdicts: Readonly<Record<string, Verdict>>): string {
  const desired = desiredFrom({ rpc: { mode: "rpc", workers: [a, b], ...rpc } });
  const { status, reason, message } = workersReady(desired, { workers: workersOf(desired, verdicts), router });
  return `${status} ${reason}: ${message}`;
}

test("all together", () => {
  assert.match(said({ mode: "single" }, { [a]: "down" }), /^True NotUsed/);
  assert.match(said({}, {}), /^True AllReachable: 2/);
  assert.match(said({}, { [a]: "unprobed" }), /^Unknown NotProbed/);
  assert.match(said({}, { [a]: "down" }), /^False WorkersMissing: 10\.0\.0\.1:1 .*other 1/);
  assert.match(said({}, { [a]: "down", [b]: "down" }), /^False WorkersMissing.*this machine alone/);
  assert.match(said({ minWorkers: 2 }, { [a]: "down" }), /^False TooFewWorkers: 1 of 2 .* asks for 2.*10\.0\.0\.1:1/);
  // One that may still be up is no reason to refuse anything.
  assert.match(said({ minWorkers: 2 }, { [a]: "unprobed" }), /^Unknown NotProbed/);
  assert.match(said({ minWorkers: 3 }, {}), /^False TooFewWorkers.*names only 2/);
});

test("each", () => {
  const [worker] = workersOf({ rpc: desiredFrom({ rpc: { workers: [a] } }).rpc });
  const [reachable, inUse] = workerFindings(worker, "acme/x:Q8_0");
  assert.deepEqual([reachable?.status, inUse?.status, inUse?.reason], ["True", "True", "ServesModel"]);
  assert.deepEqual(
    workerFindings(undefined, null).map(({ status, reason }) => `${status} ${reason}`),
    ["Unknown NotProbed", "False Idle"],
  );
});

test("the endpoints are in the document's order, each once, and none in single mode", () => {
  const desired = desiredFrom({ rpc: { mode: "rpc", workers: ["GPU.local:1", b, "gpu-too.local:1"] } });
  const workers = workersOf(desired, { "gpu-too.local:1": "unprobed" });
  const seen = workers.map((worker) =>
    worker.address === b ? worker : { ...worker, address: worker.address.toLowerCase(), endpoint: a },
  );
  // Two names of one endpoint are one worker.
  assert.deepEqual(wantedWorkers(desired, seen), { endpoints: [a, b], up: 2, unprobed: 1 });
  assert.deepEqual(wantedWorkers({ rpc: { ...desired.rpc, mode: "single" } }, seen).endpoints, []);
});
