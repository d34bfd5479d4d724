// The loop's own ways: many wakes make few passes, what it saw must still hold, and who waits is told how it ended.
import assert from "node:assert/strict";
import { describe, it, type TestContext } from "node:test";
import { isConverged, type Pass } from "../../../src/reconcile/loop.ts";
import { gate } from "../../support/executing.ts";
import { startLooping } from "../../support/looping.ts";
import { patienceMs } from "../../support/patience.ts";
import { refusal, until } from "../../support/scratch.ts";

const a = "acme/a:Q8_0";
const b = "acme/b:Q8_0";

/** A quiet loop whose next look is held. */
async function startHeld(t: TestContext) {
  const world = startLooping(t);
  world.loop.start();
  await until("it is quiet", () => world.passes.length > 1 && world.loop.last()?.running.length === 0);
  const held = gate();
  world.beforeLook = () => held.pass();
  return { world, held, before: world.looks() };
}

describe("passes", () => {
  it("are few for many wakes", async (t) => {
    const { loop, passes, want, cached } = startLooping(t);
    loop.start();
    for (let wake = 0; wake < 100; wake++) loop.wake();
    await loop.waitFor({
      generation: 0,
      timeoutMs: patienceMs,
      test: ({ running, plan }) => running.length === 0 && plan.actions.length === 0,
    });
    const before = passes.length;
    assert.ok(before <= 4, `${before} passes`);
    for (let round = 0; round < 100; round++) want(`acme/m${round}:Q8_0`);
    await until("the last one is there", () => cached.has("acme/m99:Q8_0"));
    assert.ok(passes.length - before <= 6, `${passes.length - before} passes for a hundred documents`);
    assert.deepEqual([...cached], ["acme/m99:Q8_0"]);
  });

  it("look once more when something happens during a look", async (t) => {
    const { world, held, before } = await startHeld(t);
    world.loop.wake();
    await until("it looks", () => world.looks() === before + 1);
    for (let wake = 0; wake < 20; wake++) world.loop.wake();
    held.open();
    await until("it looked again", () => world.looks() === before + 2);
    await world.loop.stop();
    assert.equal(world.looks(), before + 2);
  });

  it("are one for an edit and the call that waits for it", async (t) => {
    const { world, held, before } = await startHeld(t);
    const generation = world.want();
    world.loop.wake();
    await until("it looks", () => world.looks() === before + 1);
    const waiting = world.loop.waitFor({ generation, timeoutMs: patienceMs, test: () => true });
    held.open();
    assert.equal((await waiting).desired.generation, generation);
    // A second pass would begin at once.
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(world.looks(), before + 1);
  });

  it("follow for a call that begins to wait when the pass that another one waited for ends", async (t) => {
    const { world, held } = await startHeld(t);
    held.open();
    const wait = { generation: world.want(), timeoutMs: patienceMs, test: () => true };
    const first = await world.loop.waitFor(wait);
    assert.ok((await world.loop.waitFor(wait)).number > first.number);
  });

  it("go on with what an action has seen, and look at everything in a moment", async (t) => {
    const world = startLooping(t);
    world.loop.start();
    await until("the written preset is in the plan", () => world.passes.length === 2);
    assert.deepEqual([world.looks(), world.passes[1]?.plan.actions], [1, []]);
    const wait = { generation: 0, timeoutMs: patienceMs, test: () => true };
    assert.equal(
      world.passes[1]?.number,
      world.passes[0]?.number,
      "it is not later than a call that waits for a new one",
    );
    assert.equal((await world.loop.waitFor({ ...wait, fresh: true })).number, 2);
    world.want(a);
    world.loop.wake();
    await until("the model is there", () => world.cached.has(a));
  });

  it("look again where anything else has happened since", async (t) => {
    const held = gate();
    const world = startLooping(t, { pulling: () => held.pass() });
    world.want(a);
    world.loop.start();
    await until("the preset is written", () => world.log.includes("end preset"));
    const looks = world.looks();
    held.open();
    await until("the model is there", () => world.loop.last()?.running.length === 0 && world.looks() > looks);
  });

  it("come by themselves after a while", async (t) => {
    const world = startLooping(t, { resyncMs: 10 });
    world.loop.start();
    await until("some passes", () => world.passes.length > 5);
    await world.loop.stop();
    const { length } = world.passes;
    await new Promise((resolve) => setTimeout(resolve, 40));
    assert.equal(world.passes.length, length);
  });

  it("are no busy loop where the interval is longer than a timer can be", async (t) => {
    const world = startLooping(t, { resyncMs: 2 ** 40 });
    world.loop.start();
    await until("it has begun", () => world.passes.length > 1);
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.ok(world.looks() < 6, `${world.looks()} looks`);
  });

  it("go on after a look that failed, soon and by themselves", async (t) => {
    const world = startLooping(t);
    world.want(a);
    let failures = 2;
    world.beforeLook = () => {
      if (failures-- > 0) throw new Error("out of files");
    };
    world.loop.start();
    await until("the first look failed", () => world.errors.length === 1);
    assert.equal(world.passes.length, 0);
    world.loop.wake();
    await until("the second look failed", () => world.errors.length === 2);
    await until("the model is there", () => world.cached.has(a));
    assert.deepEqual(world.errors.map(String), ["Error: out of files", "Error: out of files"]);
  });

  it("do nothing a second time that ended while they looked", async (t) => {
    const pulling = gate();
    const looking = gate();
    const world = startLooping(t, { pulling: () => pulling.pass() });
    world.loop.start();
    world.want(a);
    await until("it is pulled", () => world.log.includes(`start model/${a}`));
    // This look takes the cache as it is before the pull ends, and is through only after it.
    world.afterLook = () => looking.pass();
    const before = world.looks();
    world.loop.wake();
    await until("it looks", () => world.looks() === before + 1);
    pulling.open();
    await until("the pull has ended", () => world.outcomes.some(({ action }) => action.key === `model/${a}`));
    world.afterLook = () => undefined;
    looking.open();
    await until(
      "all is quiet",
      () => world.looks() > before + 1 && world.executor.running().length === 0 && world.planned().actions.length === 0,
    );
    assert.equal(world.log.filter((line) => line === `start model/${a}`).length, 1);
  });

  it("end with stop, which waits for the one under way and takes note of nothing after it", async (t) => {
    const world = startLooping(t);
    const held = gate();
    world.beforeLook = () => held.pass();
    world.loop.start();
    world.want(a);
    await until("it looks", () => world.looks() === 1);
    let stopped = false;
    const stopping = world.loop.stop().then(() => {
      stopped = true;
    });
    await new Promise(setImmediate);
    assert.equal(stopped, false);
    held.open();
    await stopping;
    assert.deepEqual([world.passes.length, world.log.length], [0, 0]);
    world.loop.wake();
    await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(world.looks(), 1);
  });
});

describe("giving up transfers", () => {
  it("happens when the document no longer names the model, running or queued", async (t) => {
    const { loop, want, log, outcomes } = startLooping(t, { pulling: (_action, { signal }) => gate().pass(signal) });
    loop.start();
    want(a, b);
    await until("a is pulled", () => log.includes(`start model/${a}`));
    want();
    await until("both are given up", () => outcomes.filter(({ error }) => error?.code === "cancelled").length === 2);
    assert.deepEqual([...loop.backoff().keys()], []);
    want(b);
    await until("b is pulled after all", () => log.includes(`start model/${b}`));
  });

  it("happens when the document asks for another revision, which is then pulled", async (t) => {
    const revisions: unknown[] = [];
    const { loop, want, outcomes } = startLooping(t, {
      pulling: async (action, { signal }) => {
        revisions.push(action.kind === "model.pull" && action.revision);
        if (revisions.length === 1) await gate().pass(signal);
      },
    });
    loop.start();
    want({ id: a, revision: "v1" });
    await until("v1 is pulled", () => revisions.length === 1);
    want({ id: a, revision: "v2" });
    await until("v2 is there", () => outcomes.some(({ action, error }) => action.key === `model/${a}` && !error));
    assert.deepEqual(revisions, ["v1", "v2"]);
  });

  it("does not happen while the cache cannot be read, or the model is all but there", async (t) => {
    const pulling = gate();
    const world = startLooping(t, { pulling: (_action, { signal }) => pulling.pass(signal) });
    world.loop.start();
    world.want(a);
    await until("it is pulled", () => world.log.includes(`start model/${a}`));
    const again = async (): Promise<void> => {
      const before = world.passes.length;
      world.loop.wake();
      await until("another pass", () => world.passes.length > before);
    };
    world.cacheState = "unknown";
    await again();
    world.cacheState = "known";
    world.unreadable = ["acme/a"];
    await again();
    world.unreadable = [];
    world.cached.add(a);
    await again();
    assert.deepEqual(
      world.executor.running().map(({ action }) => action.key),
      [`model/${a}`],
    );
    pulling.open();
    await until("it is done", () => world.outcomes.some(({ action }) => action.key === `model/${a}`));
    assert.deepEqual(
      world.outcomes.filter(({ error }) => error !== null),
      [],
    );
  });
});

describe("waiting", () => {
  it("is for the first pass that has seen the generation and satisfies the test", async (t) => {
    const { loop, want, cached } = startLooping(t);
    loop.start();
    const generation = want(a);
    const pass = await loop.waitFor({
      generation,
      timeoutMs: patienceMs,
      test: ({ observed }) => observed.cache.state === "known" && observed.cache.value.models.length > 0,
    });
    assert.equal(pass.desired.generation, generation);
    assert.ok(cached.has(a));
    assert.equal(isConverged(pass), false);
    const error = await refusal(loop.waitFor({ generation: generation + 1, timeoutMs: 30, test: () => true }));
    assert.equal(error.code, "wait_timeout");
    assert.match(error.message, /^not reached within 30 ms: /);
  });

  it("can be for a pass that begins after the call: the one under way has looked already", async (t) => {
    const world = startLooping(t);
    const { loop, cached } = world;
    let waiting: Promise<Pass> | undefined;
    world.afterLook = () => {
      cached.add(a);
      waiting ??= loop.waitFor({ generation: 0, fresh: true, timeoutMs: patienceMs, test: () => true });
    };
    loop.start();
    await loop.waitFor({ generation: 0, timeoutMs: patienceMs, test: () => true });
    const { observed } = (await waiting) ?? {};
    assert.ok(observed?.cache.state === "known" && observed.cache.value.models.length === 1);
  });

  it("ends when its signal is aborted, before it began too", async (t) => {
    const { loop } = startLooping(t);
    loop.start();
    const leaving = new AbortController();
    const waiting = refusal(
      loop.waitFor({ generation: 9, timeoutMs: 60_000, signal: leaving.signal, test: () => true }),
    );
    leaving.abort();
    assert.equal((await waiting).code, "cancelled");
    assert.equal(
      (await refusal(loop.waitFor({ generation: 9, timeoutMs: 60_000, signal: leaving.signal, test: () => true })))
        .code,
      "cancelled",
    );
  });

  it("fails with what the test throws, and the others go on", async (t) => {
    const { loop } = startLooping(t);
    const failing = loop.waitFor({ generation: 0, timeoutMs: patienceMs, test: () => assert.fail("no") });
    const going = loop.waitFor({ generation: 0, timeoutMs: patienceMs, test: () => true });
    loop.start();
    await assert.rejects(failing, { message: "no" });
    assert.equal((await going).desired.generation, 0);
  });

  it("ends with the loop, and is refused after it", async (t) => {
    const { loop } = startLooping(t);
    loop.start();
    const waiting = refusal(loop.waitFor({ generation: 9, timeoutMs: 60_000, test: () => true }));
    await loop.stop();
    assert.equal((await waiting).code, "shutting_down");
    assert.equal(
      (await refusal(loop.waitFor({ generation: 0, timeoutMs: 60_000, test: () => true }))).code,
      "shutting_down",
    );
  });

  it("may be longer than a timer can be", async (t) => {
    const { loop, want } = startLooping(t);
    const waiting = loop.waitFor({ generation: 1, timeoutMs: 2 ** 40, test: () => true });
    await new Promise((resolve) => setTimeout(resolve, 20));
    loop.start();
    want(a);
    assert.equal((await waiting).desired.generation, 1);
  });
});
