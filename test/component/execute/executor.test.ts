// Lanes, keys, cancelling and closing: who runs when, and how it is told.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import { control, type Gate, gate, pull, startExecutor } from "../../support/executing.ts";
import { until } from "../../support/scratch.ts";

describe("the executor", () => {
  it("runs one action per key, and takes the key again when it has settled", async (t) => {
    const held = gate();
    const { executor, outcomes } = startExecutor(t, (_action, { signal }) => held.pass(signal));
    assert.equal(executor.submit(pull("a")), true);
    assert.equal(executor.submit(pull("a")), false);
    assert.equal(executor.submit(pull("b")), true);
    assert.equal(executor.submit(pull("b")), false);
    held.open();
    await until("both settled", () => outcomes.length === 2);
    assert.deepEqual(executor.running(), []);
    assert.equal(executor.submit(pull("a")), true);
    await until("again", () => outcomes.length === 3);
  });

  it("tells who follows a key of each step and end, before the loop hears of it, until they stop", async (t) => {
    const held = gate();
    const seen: string[] = [];
    const { executor, outcomes } = startExecutor(
      t,
      async (_action, { signal, report }) => {
        report({ phase: "downloading", completed: 1, total: 2 });
        await held.pass(signal);
      },
      { onSettled: ({ action }) => void seen.push(`loop ${action.key}`) },
    );
    const unfollow = executor.follow("model/a", {
      progress: ({ key }, { completed }) => void seen.push(`${key} ${completed}`),
      settled: ({ action, error, removed }) =>
        void seen.push(`${action.key} ${error?.code ?? "done"} ${removed === null ? "nothing" : "files"}`),
    });
    executor.follow("model/b", {});
    executor.submit(pull("a"));
    executor.submit(pull("b"));
    held.open();
    await until("both settled", () => outcomes.length === 2);
    unfollow();
    executor.submit(pull("a"));
    await until("again", () => outcomes.length === 3);
    assert.deepEqual(seen, ["model/a 1", "model/a done nothing", "loop model/a", "loop model/b", "loop model/a"]);
  });

  it("runs the control lane one after the other, in order, while transfers run beside it", async (t) => {
    const gates = new Map<string, Gate>([
      ["model/slow", gate()],
      ["x", gate()],
      ["y", gate()],
    ]);
    const { executor, log } = startExecutor(t, async ({ key }, { signal }) => gates.get(key)?.pass(signal));
    executor.submit(pull("slow"));
    executor.submit(control("x"));
    executor.submit(control("y"));
    await until("two run", () => log.length === 2);
    assert.deepEqual(log, ["start model/slow", "start x"]);
    assert.deepEqual(
      executor.running().map(({ action, lane, startedAt }) => [action.key, lane, startedAt !== null]),
      [
        ["model/slow", "transfer", true],
        ["x", "control", true],
        ["y", "control", false],
      ],
    );
    gates.get("x")?.open();
    gates.get("y")?.open();
    await until("the control lane is through", () => log.includes("end y"));
    assert.deepEqual(log.slice(2), ["end x", "start y", "end y"]);
    gates.get("model/slow")?.open();
    await until("the transfer too", () => log.includes("end model/slow"));
  });

  it("runs as many transfers at once as it may", async (t) => {
    const held = gate();
    const { executor, log } = startExecutor(t, (_action, { signal }) => held.pass(signal), { transfers: 2 });
    for (const name of ["a", "b", "c"]) executor.submit(pull(name));
    await until("two run", () => log.length === 2);
    assert.deepEqual(log, ["start model/a", "start model/b"]);
    held.open();
    await until("all are done", () => log.length === 6);
  });

  it("runs one transfer of speech beside them, however long they take", async (t) => {
    const held = gate();
    const voices = new Map(["one", "two"].map((name) => [`voice/${name}`, gate()]));
    const { executor, log } = startExecutor(t, ({ key }, { signal }) => (voices.get(key) ?? held).pass(signal));
    executor.submit(pull("a"));
    for (const voice of ["one", "two"])
      executor.submit({ kind: "voice.pull", key: `voice/${voice}`, voice, reason: "", message: "", disrupts: [] });
    await until("two run", () => log.length === 2);
    assert.deepEqual(log, ["start model/a", "start voice/one"]);
    voices.get("voice/one")?.open();
    await until("the next voice", () => log.length === 4);
    assert.deepEqual(log.slice(2), ["end voice/one", "start voice/two"]);
    voices.get("voice/two")?.open();
    held.open();
    await until("all are done", () => log.length === 6);
  });

  it("tells how far an action is, and how long it took", async (t) => {
    let clock = 1000;
    const held = gate();
    const { executor, outcomes, progress } = startExecutor(
      t,
      async (_action, { report, signal }) => {
        report({ phase: "downloading", completed: 1, total: 2, bytesPerSecond: 9 });
        await held.pass(signal);
      },
      { now: () => clock },
    );
    executor.submit(pull("a"));
    await until("it runs", () => progress.length === 1);
    const reported = { phase: "downloading", completed: 1, total: 2 };
    assert.deepEqual(executor.running()[0]?.progress, { ...reported, bytesPerSecond: 9 });
    assert.equal(executor.running()[0]?.startedAt, 1000);
    clock = 6000;
    const stalled = { ...reported, bytesPerSecond: 0, secondsLeft: null };
    assert.deepEqual(executor.running()[0]?.progress, stalled, "no byte came for five seconds");
    held.open();
    await until("it is done", () => outcomes.length === 1);
    assert.deepEqual([outcomes[0]?.ms, outcomes[0]?.error], [5000, null]);
  });

  it("gives each failure its code, and goes on after it", async (t) => {
    const full = new GatewayError("disk_full", "no room");
    const thrown: Record<string, unknown> = {
      "model/a": full,
      "model/b": new TypeError("a defect"),
      "model/c": "a text",
    };
    const { executor, outcomes, log } = startExecutor(t, async ({ key }) => {
      if (key in thrown) throw thrown[key];
    });
    for (const name of ["a", "b", "c", "d"]) executor.submit(pull(name));
    await until("all settled", () => outcomes.length === 4);
    assert.deepEqual(
      outcomes.map(({ error }) => error && [error.code, error.message]),
      [["disk_full", "no room"], ["internal", "a defect"], ["internal", "a text"], null],
    );
    assert.equal(outcomes[0]?.error, full);
    assert.ok(outcomes[1]?.error?.cause instanceof TypeError);
    assert.equal(log.at(-1), "end model/d");
  });
});

describe("cancelling", () => {
  it("aborts what runs, waits until it has cleaned up, and only then lets the next one in", async (t) => {
    const cleaning = gate();
    const reasons: unknown[] = [];
    const { executor, log, outcomes } = startExecutor(t, async ({ key }, { signal }) => {
      if (key !== "model/a") return;
      await gate()
        .pass(signal)
        .catch((reason: unknown) => reasons.push(reason));
      await cleaning.pass();
      throw new Error("broken off");
    });
    executor.submit(pull("a"));
    executor.submit(pull("b"));
    await until("a runs", () => log.length === 1);
    executor.cancel("model/a");
    await until("it has noticed", () => reasons.length === 1);
    assert.deepEqual(log, ["start model/a"]);
    assert.equal(executor.submit(pull("a")), false);
    cleaning.open();
    await until("b is done", () => outcomes.length === 2);
    assert.deepEqual(log, ["start model/a", "end model/a cancelled", "start model/b", "end model/b"]);
    assert.ok(reasons[0] instanceof GatewayError && reasons[0].code === "cancelled");
  });

  it("settles what is queued at once, without running it, and the key is free", async (t) => {
    const held = gate();
    const { executor, log, outcomes } = startExecutor(t, (_action, { signal }) => held.pass(signal));
    executor.submit(pull("a"));
    executor.submit(pull("b"));
    executor.submit(pull("c"));
    await until("a runs", () => log.length === 1);
    executor.cancel("model/b");
    await until("b has settled", () => outcomes.length === 1);
    assert.deepEqual([outcomes[0]?.action.key, outcomes[0]?.error?.code, outcomes[0]?.ms], ["model/b", "cancelled", 0]);
    assert.deepEqual(
      executor.running().map(({ action }) => action.key),
      ["model/a", "model/c"],
    );
    assert.equal(executor.submit(pull("b", "other")), true);
    held.open();
    await until("all are through", () => outcomes.length === 4);
    assert.deepEqual(
      log.filter((line) => line.startsWith("start")),
      ["start model/a", "start model/c", "start model/b"],
    );
  });

  it("counts as done what was done before it noticed, and knows no key that is not there", async (t) => {
    const held = gate();
    const { executor, outcomes } = startExecutor(t, () => held.pass());
    executor.submit(pull("a"));
    executor.cancel("model/none");
    await until("a runs", () => executor.running()[0]?.startedAt);
    executor.cancel("model/a");
    held.open();
    await until("it is done", () => outcomes.length === 1);
    assert.equal(outcomes[0]?.error, null);
  });
});

describe("closing", () => {
  it("aborts everything with the reason of a shutdown, waits for all of it, and takes nothing more", async (t) => {
    const reasons: Record<string, unknown> = {};
    const cleaning = gate();
    const { executor, log, outcomes } = startExecutor(t, async ({ key }, { signal }) => {
      await gate()
        .pass(signal)
        .catch((reason: unknown) => {
          reasons[key] = reason;
        });
      await cleaning.pass();
      throw signal.reason;
    });
    for (const action of [pull("a"), pull("b"), control(), control("other")]) executor.submit(action);
    await until("both lanes run", () => log.length === 2);
    let closed = false;
    const closing = executor.close().then(() => {
      closed = true;
    });
    await until("both have noticed", () => Object.keys(reasons).length === 2);
    assert.equal(closed, false);
    for (const reason of Object.values(reasons))
      assert.ok(reason instanceof GatewayError && reason.code === "shutting_down");
    assert.equal(executor.submit(pull("c")), false);
    cleaning.open();
    await closing;
    assert.deepEqual(Object.keys(reasons).sort(), ["model/a", "router"]);
    assert.deepEqual(outcomes.map(({ action, error }) => [action.key, error?.code]).sort(), [
      ["model/a", "shutting_down"],
      ["model/b", "shutting_down"],
      ["other", "shutting_down"],
      ["router", "shutting_down"],
    ]);
    assert.deepEqual(executor.running(), []);
    await executor.close();
  });
});
