// A worker that has come back by itself waits for the answers under way; what somebody asks for does not wait for it.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { WorkerSnapshot } from "../../../src/plan/observed.ts";
import { onlyTakesBack, wantedWorkers } from "../../../src/plan/workers.ts";
import { workerFindings, workersReady } from "../../../src/status/worker-conditions.ts";
import { desiredFrom, workersOf } from "./world.ts";

const [a, b] = ["10.0.0.1:1", "10.0.0.2:1"];
const desired = desiredFrom({ rpc: { mode: "rpc", workers: [a, b] } });

function seen(returned: readonly string[], answering: boolean): { workers: WorkerSnapshot[]; answering: boolean } {
  const { workers } = workersOf(desired);
  return { workers: workers.map((worker) => ({ ...worker, returned: returned.includes(worker.address) })), answering };
}

test("it is left out while an answer is under way, unless it is in force already", () => {
  assert.deepEqual(wantedWorkers(desired, seen([b], true), [a]), { endpoints: [a], up: 2, unprobed: 0, waiting: [b] });
  assert.deepEqual(wantedWorkers(desired, seen([b], true), [a, b]).endpoints, [a, b]);
  assert.deepEqual(wantedWorkers(desired, seen([b], false), [a]).endpoints, [a, b]);
  // One that somebody has just named is no returned one.
  assert.deepEqual(wantedWorkers(desired, seen([], true), [a]).endpoints, [a, b]);
});

test("a reload yields to answers only where nothing but that is new", () => {
  const preset = (endpoints: string, rest = ""): string => `[*]\noffline = true\n${endpoints}${rest}`;
  const { workers } = seen([b], false);
  assert.equal(onlyTakesBack(preset(`rpc = ${a}\n`), preset(`rpc = ${a},${b}\n`), workers), true);
  assert.equal(onlyTakesBack(preset(""), preset(`rpc = ${b}\n`), workers), true);
  assert.equal(onlyTakesBack(preset(`rpc = ${b}\n`), preset(`rpc = ${a},${b}\n`), workers), false);
  assert.equal(onlyTakesBack(preset(`rpc = ${a}\n`), preset(`rpc = ${b}\n`), workers), false);
  assert.equal(onlyTakesBack(preset(`rpc = ${a},${b}\n`), preset(`rpc = ${a}\n`), workers), false);
  const edited = preset(`rpc = ${a},${b}\n`, "[acme/x:Q8_0]\nctx-size = 512\n");
  assert.equal(onlyTakesBack(preset(`rpc = ${a}\n`), edited, workers), false);
});

test("that it waits is said", () => {
  const router = { models: { state: "known", value: [] }, loadedPreset: `[*]\nrpc = ${a}\n` } as const;
  const { status, message } = workersReady(desired, {
    workers: seen([b], true),
    router,
  });
  assert.deepEqual([status, message], ["True", `2 of 2 workers can be used; ${b} once no request is under way.`]);
  assert.equal(workerFindings(seen([b], true).workers[1], null, true)[1]?.reason, "WaitingForDrain");
});
