// How much models may take while their processes come and go.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createModelMemory } from "../../../src/memory/model-memory.ts";
import { host } from "../../../src/memory/need.ts";
import { createSpace } from "../../../src/memory/space.ts";

test("what a process that is ending still has is no other program's", () => {
  const running = new Map<number, number | null>([
    [7, 300],
    [8, 500],
  ]);
  let [free, at] = [200, 0];
  const space = createSpace({
    reader: {
      memory: () => ({ total: 1_000, free }),
      held: (pid) => running.get(pid) ?? null,
      files: () => 0,
      kills: () => 0,
    },
    settings: () => ({ reserve: 0 }),
    instances: { pids: () => [...running.keys()] },
    now: () => (at += 1_000),
  });
  const limit = (): number | undefined => space.limits().get(host);
  assert.equal(limit(), 1_000);
  running.set(8, null);
  space.refresh();
  assert.equal(limit(), 1_000, "nothing of it is free yet");
  assert.equal(space.held(8), 500);
  free = 400;
  assert.equal(limit(), 1_000, "a part of it is free: never more than there is");
  running.delete(8);
  assert.equal(limit(), 700, "it is gone, and another program has 300");
  running.set(8, null);
  assert.equal(limit(), 700, "another process of that number");
});

test("a reading is kept for a moment, and no longer than the list of models stays as it is", () => {
  let free = 200;
  const reader = { memory: () => ({ total: 1_000, free }), held: () => null, files: () => 0, kills: () => 0 };
  const space = createSpace({
    reader,
    settings: () => ({ reserve: 0 }),
    instances: { pids: () => [] },
    now: () => 0,
  });
  const unasked = (): never => assert.fail("nothing is asked about a model");
  const models = createModelMemory({
    space,
    reader,
    facts: {
      need: unasked,
      bound: unasked,
      needFor: unasked,
      questionWith: unasked,
      estimated: unasked,
      remedy: unasked,
      largest: unasked,
      noteMeasured: unasked,
    },
    instances: { list: () => [], get: () => null, detachedUsers: () => 0 },
    listDevices: unasked,
  });
  assert.equal(models.limits().get(host), 200);
  free = 900;
  assert.equal(models.limits().get(host), 200);
  models.refresh();
  assert.equal(models.limits().get(host), 900);
});
