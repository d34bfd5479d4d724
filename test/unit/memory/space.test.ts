// How much models may take while their processes come and go.
import assert from "node:assert/strict";
import { test } from "node:test";
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
