// The runner: promises, signals and the timer around the state, on a router that answers at once.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import type { TokenAnswer } from "../../../src/core/token-answer.ts";
import type { Instance } from "../../../src/engines/llama/instances.ts";
import type { Router } from "../../../src/engines/llama/router.ts";
import { createScheduler, type Scheduler } from "../../../src/scheduler/scheduler.ts";
import { unknownMemory } from "../../../src/scheduler/state/world.ts";
import { until } from "../../support/scratch.ts";

interface Scene {
  readonly scheduler: Scheduler;
  /** Calls of the router, callbacks, in their order. */
  readonly told: string[];
  /** What the next load or unload fails with. */
  failsWith: GatewayError | null;
  /** What the next process does when it is asked for a token. */
  answers: TokenAnswer;
  /** Answers in flight that hold an instance. */
  retained: number;
}

const stays = new AbortController().signal;

function instanceOf(id: string, scene: () => Scene): Instance {
  const retain = (): (() => void) => {
    scene().retained++;
    return () => void scene().retained--;
  };
  const facts = { key: "", ctxSize: null, nCtx: null, pid: null, workers: [], slots: 1, task: "completion" as const };
  return { id, origin: `http://127.0.0.1/${id}`, ...facts, retain };
}

function start(keepAliveMs = 60_000, slots = 2): Scene {
  const told: string[] = [];
  const loaded = new Set<string>();
  const models = (): object[] =>
    ["a", "b"].map((id) => ({
      id,
      value: loaded.has(id) ? "loaded" : "unloaded",
      args: [],
      failed: false,
      nCtx: null,
    }));
  const call = async (what: string, id: string): Promise<void> => {
    told.push(`${what} ${id}`);
    const error = scene.failsWith;
    scene.failsWith = null;
    if (error) throw error;
    if (what === "load") loaded.add(id);
    else loaded.delete(id);
  };
  const client = { load: (id: string) => call("load", id), unload: (id: string) => call("unload", id) };
  const router = {
    isReady: () => true,
    snapshot: () => ({ phase: "ready", models: { state: "known", value: models() } }),
    instances: { list: () => [...loaded].map((id) => instanceOf(id, () => scene)) },
    client: () => client,
    refresh: async () => scene.scheduler.observe(),
    complaints: () => "",
  } as unknown as Router;
  const gate = {
    refusal: () => null,
    check: () => ({ kind: "ready", stallMs: Number.POSITIVE_INFINITY }) as const,
    explain: async () => ({ isWorkerLost: false, workers: "" }),
    release: () => void told.push("release workers"),
  };
  const scheduler = createScheduler({
    router,
    gate,
    limits: { queueLimit: 9, drainMs: 50, loadTimeoutMs: 60_000, routerWaitMs: 60_000, keepAliveMs },
    modelsMax: () => slots,
    isBehind: () => false,
    engineProblem: () => null,
    isCached: () => true,
    rules: () => new Map(),
    isPinned: () => false,
    memory: { ...unknownMemory, refresh: () => undefined, begin: () => null, shortage: () => null },
    onUse: (id) => void told.push(`use ${id}`),
    onIdle: (id) => void told.push(`idle ${id}`),
    askFirstToken: async ({ id }) => {
      told.push(`ask ${id}`);
      return scene.answers;
    },
    outputSince: async () => [],
    hasFallback: () => false,
    onFallBack: () => undefined,
    onLoadVerified: (id) => void told.push(`verified ${id}`),
    onLoadFailed: (id) => void told.push(`failed ${id}`),
    onDrained: (id, cut) => void told.push(`drained ${id} ${cut}`),
    warn: (message) => void told.push(message),
    now: () => Math.floor(performance.now()),
  });
  const scene: Scene = { scheduler, told, failsWith: null, answers: { kind: "given" }, retained: 0 };
  scheduler.observe();
  return scene;
}

describe("the scheduler", () => {
  // Its own timer keeps no process alive; in a gateway the sockets do.
  let alive: NodeJS.Timeout;
  before(() => {
    alive = setInterval(() => undefined, 1_000);
  });
  after(() => clearInterval(alive));

  it("loads a model for its first request; then a lease is granted in the same call", async () => {
    const scene = start();
    const { scheduler, told } = scene;
    assert.equal(scheduler.tryAcquire("a"), null);
    const lease = await scheduler.acquire("a", stays);
    const second = scheduler.tryAcquire("a");
    assert.ok(second);
    assert.deepEqual([second.instance.id, scheduler.inFlight().get("a"), scene.retained], ["a", 2, 2]);
    lease.release();
    lease.release();
    second.release();
    assert.deepEqual([scheduler.inFlight().size, scene.retained], [0, 0]);
    assert.deepEqual(told, ["load a", "ask a", "verified a", "use a", "release workers", "idle a"]);
    assert.equal(scheduler.peek("a")?.id, "a");
  });

  it("rejects what cannot be loaded, and a client that leaves is out of the queue", async () => {
    const scene = start();
    scene.failsWith = new GatewayError("router_unavailable", "the router answered with 500");
    await assert.rejects(scene.scheduler.acquire("a", stays), { code: "router_unavailable" });
    await assert.rejects(scene.scheduler.acquire("a", AbortSignal.abort()), { code: "cancelled" });
    const leaving = new AbortController();
    const end = await scene.scheduler.drain(["a"], stays);
    const waits = scene.scheduler.acquire("a", leaving.signal);
    assert.deepEqual(
      scene.scheduler.waiting().map((entry) => [entry.requests, entry.for]),
      [[1, "drain"]],
    );
    leaving.abort();
    await assert.rejects(waits, { code: "cancelled" });
    assert.deepEqual(scene.scheduler.waiting(), []);
    end();
    assert.deepEqual(scene.told, ["load a", "release workers"]);
  });

  it("gives a process that gives no token to nobody: it is unloaded, and the request fails with the engine's words", async () => {
    const scene = start();
    scene.answers = { kind: "refused", why: "500: no." };
    await assert.rejects(scene.scheduler.acquire("a", stays), {
      message: "a could not be loaded: it gives no token: 500: no.",
    });
    await until("a is unloaded", () => scene.told.includes("unload a"));
    await assert.rejects(scene.scheduler.acquire("a", stays), { code: "load_failing" });
    scene.answers = { kind: "given" };
    scene.scheduler.resetBackoff("a");
    (await scene.scheduler.acquire("a", stays)).release();
    assert.equal(typeof scene.scheduler.firstTokens().get("a"), "number");
  });

  it("drains: waits for leases, marks those that it cuts, and can be given up", async () => {
    const { scheduler, told } = start();
    const lease = await scheduler.acquire("a", stays);
    const leaving = new AbortController();
    const givenUp = scheduler.drain(["a"], leaving.signal);
    leaving.abort();
    await assert.rejects(givenUp, { code: "cancelled" });
    assert.equal(lease.overdue(), null);
    const end = await scheduler.drain(["a"], stays);
    assert.equal(lease.overdue()?.code, "upstream_failed");
    assert.equal(told.at(-1), "drained a 1");
    assert.deepEqual([scheduler.tryAcquire("a"), scheduler.peek("a")], [null, null]);
    end();
    assert.ok(scheduler.tryAcquire("a"));
  });

  it("unloads on request, once for all who ask, and tells where it did not work", async () => {
    const scene = start();
    const { scheduler, told } = scene;
    (await scheduler.acquire("a", stays)).release();
    told.length = 0;
    await Promise.all([scheduler.abandon("a"), scheduler.abandon("a")]);
    assert.deepEqual([told, scheduler.peek("a")], [["unload a"], null]);
    const { instance, release } = await scheduler.acquire("a", stays);
    release();
    await scheduler.replace({ ...instance, origin: "another process" });
    assert.ok(scheduler.peek("a"));
    scene.failsWith = new GatewayError("router_unavailable", "no");
    await assert.rejects(scheduler.replace(instance), { message: "no" });
    await scheduler.unload("a", stays);
    assert.equal(scheduler.peek("a"), null);
  });

  it("unloads an idle model when its time is over, with one timer", async () => {
    const { scheduler, told } = start(20);
    (await scheduler.acquire("a", stays)).release();
    assert.ok((scheduler.expiresAt("a") ?? 0) > 0);
    await until("a is unloaded", () => told.includes("unload a"));
    const lease = await scheduler.acquire("a", stays);
    scheduler.keep("a", { kind: "forever" });
    lease.release();
    assert.equal(scheduler.expiresAt("a"), null);
  });

  it("keeps the place of a request that waits for something else, and rejects it at the shutdown", async () => {
    const { scheduler } = start();
    const rejected: string[] = [];
    const entrance = scheduler.enter("a", "size", ({ code }) => rejected.push(code));
    assert.deepEqual(
      scheduler.waiting().map((entry) => entry.for),
      ["size"],
    );
    (await scheduler.acquire("a", stays, entrance)).release();
    assert.deepEqual(scheduler.waiting(), []);
    entrance.again();
    const loads = scheduler.acquire("b", stays);
    scheduler.shutDown();
    await assert.rejects(loads, { code: "shutting_down" });
    scheduler.enter("a", "turn", ({ code }) => rejected.push(code));
    assert.deepEqual(rejected, ["shutting_down", "shutting_down"]);
    entrance.leave();
    assert.deepEqual(scheduler.waiting(), []);
  });
});
