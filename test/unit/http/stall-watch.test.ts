// When a model hangs on its RPC workers: when its process says nothing at all, and not when one answer is silent.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import type { Instance } from "../../../src/engines/instances.ts";
import { createStallWatch, type StallWatch } from "../../../src/http/stall-watch.ts";

const seconds = 1_000;

function instanceWith(workers: readonly string[]): Instance {
  const id = "acme/x:Q8_0";
  return { id, origin: "http://127.0.0.1:1", key: "", ctxSize: null, nCtx: null, workers, retain: () => () => undefined };
}

interface Scene {
  readonly watch: StallWatch;
  readonly instance: Instance;
  /** How often it was asked and has not answered yet, and how often it was called hanging. */
  readonly seen: { asked: number; stalls: number };
  answer(): Promise<void>;
  /** Seconds go by, one after another. */
  pass(time: number): Promise<void>;
}

/** Eight seconds of patience; `answers`: whether it answers at once. */
function scene(t: TestContext, answers: boolean): Scene {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const seen = { asked: 0, stalls: 0 };
  let reply: (answered: boolean) => void = () => undefined;
  const watch = createStallWatch({
    stallMs: 8 * seconds,
    asks: () => {
      seen.asked++;
      return answers
        ? Promise.resolve(true)
        : new Promise((resolve) => {
            reply = resolve;
          });
    },
    onStall: () => void seen.stalls++,
  });
  const settle = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  return {
    watch,
    instance: instanceWith(["10.0.0.1:1"]),
    seen,
    answer: () => {
      reply(true);
      return settle();
    },
    pass: async (time) => {
      for (let second = 0; second < time; second++) {
        t.mock.timers.tick(seconds);
        await settle();
      }
    },
  };
}

test("an answer that is silent for ever is none that hangs, as long as the process speaks", async (t) => {
  const { watch, instance, seen, pass } = scene(t, true);
  watch.begin(instance);
  await pass(600);
  assert.equal(seen.stalls, 0);
  assert.ok(seen.asked > 200);
});

test("what comes to one answer is a sign for all", async (t) => {
  const { watch, instance, seen, pass } = scene(t, false);
  for (let waiting = 0; waiting < 20; waiting++) watch.begin(instance);
  for (let round = 0; round < 20; round++) {
    await pass(7);
    watch.sign(instance);
  }
  assert.equal(seen.stalls, 0);
});

test("a process that says nothing hangs, and that is said once, however many wait", async (t) => {
  const { watch, instance, seen, pass } = scene(t, false);
  for (let waiting = 0; waiting < 20; waiting++) watch.begin(instance);
  await pass(7);
  assert.deepEqual(seen, { asked: 1, stalls: 0 });
  await pass(1);
  assert.equal(seen.stalls, 1);
  await pass(60);
  assert.deepEqual(seen, { asked: 1, stalls: 1 });
});

test("a late answer counts from when it came", async (t) => {
  const { watch, instance, seen, answer, pass } = scene(t, false);
  watch.begin(instance);
  await pass(7);
  await answer();
  await pass(7);
  assert.equal(seen.stalls, 0);
  await pass(1);
  assert.equal(seen.stalls, 1);
});

test("who gives up and asks again keeps no hang from being seen, and nothing is counted meanwhile", async (t) => {
  const { watch, instance, seen, pass } = scene(t, false);
  watch.begin(instance)();
  await pass(600);
  assert.deepEqual(seen, { asked: 0, stalls: 0 });
  for (let round = 0; round < 2; round++) {
    const over = watch.begin(instance);
    await pass(4);
    over();
  }
  assert.equal(seen.stalls, 1);
});

test("a model on this machine alone is not watched", async (t) => {
  const { watch, seen, pass } = scene(t, false);
  watch.begin(instanceWith([]));
  await pass(60);
  assert.deepEqual(seen, { asked: 0, stalls: 0 });
});
