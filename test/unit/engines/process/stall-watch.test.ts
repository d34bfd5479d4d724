// When a process hangs, a model on its RPC workers: when it says nothing at all, and not when one answer is silent.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Instance } from "../../../../src/engines/llama/instances.ts";
import { createStallWatch, type StallWatch } from "../../../../src/engines/process/stall-watch.ts";

const seconds = 1_000;

function instanceWith(workers: readonly string[]): Instance {
  const id = "acme/x:Q8_0";
  return {
    id,
    origin: "http://127.0.0.1:1",
    key: "",
    ctxSize: null,
    nCtx: null,
    pid: null,
    workers,
    slots: 4,
    task: "completion",
    retain: () => () => undefined,
  };
}

interface Scene {
  readonly watch: StallWatch<Instance>;
  readonly instance: Instance;
  readonly seen: { looks: number; stalls: number };
  /** Seconds go by, one after another. */
  pass(time: number): Promise<void>;
}

/** Eight seconds of patience. `mark`: how far it has computed at its so-many-th look. */
function scene(t: TestContext, mark: (look: number) => string | null): Scene {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const seen = { looks: 0, stalls: 0 };
  const watch = createStallWatch<Instance>({
    stallMs: 8 * seconds,
    isWatched: ({ workers }) => workers.length > 0,
    look: async () => mark(++seen.looks),
    onStall: () => void seen.stalls++,
  });
  return {
    watch,
    instance: instanceWith(["10.0.0.1:1"]),
    seen,
    pass: async (time) => {
      for (let second = 0; second < time; second++) {
        t.mock.timers.tick(seconds);
        await new Promise((resolve) => setImmediate(resolve));
      }
    },
  };
}

const still = (): string => "the same";

test("an answer that is silent for ever is none that hangs, as long as its process computes", async (t) => {
  const { watch, instance, seen, pass } = scene(t, String);
  watch.begin(instance);
  await pass(600);
  assert.equal(seen.stalls, 0);
  assert.ok(seen.looks > 200);
});

test("one step within the patience is enough", async (t) => {
  const { watch, instance, seen, pass } = scene(t, (look) => String(Math.floor(look / 5)));
  watch.begin(instance);
  await pass(600);
  assert.equal(seen.stalls, 0);
});

test("what comes to one answer is a sign for all", async (t) => {
  const { watch, instance, seen, pass } = scene(t, still);
  for (let waiting = 0; waiting < 20; waiting++) watch.begin(instance);
  for (let round = 0; round < 20; round++) {
    await pass(7);
    watch.sign(instance);
  }
  assert.equal(seen.stalls, 0);
});

test("a process that computes nothing hangs, and that is said once, however many wait", async (t) => {
  const { watch, instance, seen, pass } = scene(t, still);
  for (let waiting = 0; waiting < 20; waiting++) watch.begin(instance);
  await pass(7);
  assert.equal(seen.stalls, 0);
  await pass(1);
  assert.equal(seen.stalls, 1);
  await pass(60);
  assert.equal(seen.stalls, 1);
});

test("one that cannot be looked into never counts as hanging", async (t) => {
  const { watch, instance, seen, pass } = scene(t, () => null);
  watch.begin(instance);
  await pass(600);
  assert.equal(seen.stalls, 0);
});

test("who gives up and asks again keeps no hang from being seen, and nothing is counted meanwhile", async (t) => {
  const { watch, instance, seen, pass } = scene(t, still);
  watch.begin(instance)();
  await pass(600);
  assert.deepEqual(seen, { looks: 0, stalls: 0 });
  for (let round = 0; round < 2; round++) {
    const over = watch.begin(instance);
    await pass(4);
    over();
  }
  assert.equal(seen.stalls, 1);
});

test("a model on this machine alone is not watched", async (t) => {
  const { watch, seen, pass } = scene(t, still);
  watch.begin(instanceWith([]));
  await pass(60);
  assert.deepEqual(seen, { looks: 0, stalls: 0 });
});
