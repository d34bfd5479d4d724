// When a model may be loaded onto RPC workers, and what a load that ended is told of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { WorkerSnapshot } from "../../../src/plan/observed.ts";
import type { Workers } from "../../../src/rpc/workers.ts";
import { createRpcGate, type RpcGate } from "../../../src/scheduler/rpc-gate.ts";
import { desiredFrom, workersOf } from "../plan/world.ts";

const [a, b] = ["10.0.0.1:1", "10.0.0.2:1"];

interface Scene {
  readonly gate: RpcGate;
  mode: "rpc" | "single";
  verdict: WorkerSnapshot["verdict"];
  /** The endpoints that the router has. */
  inForce: readonly string[];
  detached: number;
  answer: boolean;
  reservations: number;
}

function start(): Scene {
  const document = (): ReturnType<typeof desiredFrom> =>
    desiredFrom({ rpc: { mode: scene.mode, workers: [a, b], minWorkers: 2 } });
  const workers: Partial<Workers> = {
    snapshot: () => {
      const found = workersOf(desiredFrom({ rpc: { mode: "rpc", workers: [a, b] } }));
      return found.map((worker) => ({ ...worker, verdict: scene.verdict }));
    },
    enter: async () => {
      if (scene.answer) scene.reservations++;
      return scene.answer;
    },
    leave: () => void scene.reservations--,
    hasLost: async () => !scene.answer,
  };
  const router = {
    models: () => ({
      state: "known",
      value: [{ id: "m", args: scene.inForce.length === 0 ? [] : ["--rpc", scene.inForce.join(",")] }],
    }),
    snapshot: () => ({ loadedPreset: scene.inForce.length === 0 ? "" : `[*]\nrpc = ${scene.inForce.join(",")}\n` }),
    instances: { detachedUsers: () => scene.detached },
  };
  const scene: Scene = {
    gate: createRpcGate({
      desired: () => ({ generation: 1, document: document() }) as never,
      router: router as never,
      workers: workers as Workers,
      stallMs: 7,
    }),
    mode: "rpc",
    verdict: "up",
    inForce: [a, b],
    detached: 0,
    answer: true,
    reservations: 0,
  };
  return scene;
}

test("in single mode a load may begin at once, and has no worker to explain its end", async () => {
  const scene = start();
  Object.assign(scene, { mode: "single", inForce: [], verdict: "down" });
  assert.equal(scene.gate.refusal(), null);
  assert.deepEqual(scene.gate.check("m", false), { kind: "ready", stallMs: Number.POSITIVE_INFINITY });
  assert.deepEqual(await scene.gate.explain(), { isWorkerLost: false, workers: "" });
  scene.gate.release();
  assert.equal(scene.reservations, 0);
});

test("workers that answer are reserved until the load is over; a lost one is named", async () => {
  const scene = start();
  assert.deepEqual(await scene.gate.check("m", false), { kind: "ready", stallMs: 7 });
  assert.equal(scene.reservations, 1);
  scene.answer = false;
  const { isWorkerLost, workers } = await scene.gate.explain();
  assert.deepEqual([isWorkerLost, workers.includes(a), workers.includes(b)], [true, true, true]);
  scene.gate.release();
  scene.gate.release();
  assert.equal(scene.reservations, 0);
});

test("a load waits for the preset, for models that outlived their router and for workers; late ones are told", async () => {
  const scene = start();
  scene.inForce = [a];
  assert.deepEqual(scene.gate.check("m", false), { kind: "wait" }, "the preset is about to change");
  assert.deepEqual(await scene.gate.check("m", true), { kind: "ready", stallMs: 7 }, "it has had its time");
  scene.gate.release();
  Object.assign(scene, { inForce: [a, b], detached: 1 });
  assert.deepEqual(scene.gate.check("m", true), { kind: "wait" });
  Object.assign(scene, { detached: 0, answer: false });
  assert.deepEqual(await scene.gate.check("m", false), { kind: "wait" });
  const refused = await scene.gate.check("m", true);
  assert.equal(refused.kind === "refused" && refused.error.code, "model_load_failed");
  scene.verdict = "down";
  const few = await scene.gate.check("m", false);
  assert.equal(few.kind === "refused" && few.error.code, "too_few_workers");
  assert.equal(scene.gate.refusal()?.code, "too_few_workers");
});
