// What the engines of speech have in common: who uses one and who waits, and that a stop cuts nobody off who is in time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../src/core/errors.ts";
import type { ServerSnapshot } from "../../src/engines/server-child.ts";
import { createSpeechEngine, type SpeechEngine } from "../../src/engines/speech-engine.ts";
import { refusal, until } from "../support/scratch.ts";

const never = new AbortController().signal;

interface World {
  readonly engine: SpeechEngine;
  readonly log: string[];
  clock: number;
  isInstalled: boolean;
  found: number;
  crash(): void;
}

function world(options: { readonly drainMs?: number; readonly idleMs?: number; readonly atMost?: number } = {}): World {
  let phase: ServerSnapshot["phase"] = "stopped";
  const log: string[] = [];
  const made: Omit<World, "engine"> = {
    log,
    clock: 0,
    isInstalled: true,
    found: 0,
    crash: () => {
      phase = "stopped";
    },
  };
  const engine = createSpeechEngine(
    {
      snapshot: () => ({ phase, pid: phase === "stopped" ? null : 1, crashes: [], lastWords: "", silentSince: null }),
      find: () =>
        made.isInstalled ? Promise.resolve() : Promise.reject(new GatewayError("engine_missing", "there is none")),
      has: () => Promise.resolve(true),
      start: async (choice) => {
        log.push(`start ${choice}`);
        phase = "ready";
        await Promise.resolve();
      },
      stop: () => {
        log.push("stop");
        phase = "stopped";
        return Promise.resolve();
      },
    },
    {
      what: "answers",
      atMost: options.atMost ?? 3,
      idleMs: options.idleMs ?? 1_000,
      drainMs: options.drainMs ?? 60_000,
      now: () => made.clock,
      onChange: () => undefined,
      onFound: () => void made.found++,
    },
  );
  return Object.assign(made, { engine });
}

test("a stop waits for those who use it, and who comes meanwhile finds it stopped", async () => {
  const { engine, log } = world();
  await engine.start("a", never);
  assert.equal(engine.runs("a"), true);
  assert.equal(engine.runs("b"), false);
  const release = await engine.lease(never);
  const stopped = engine.stop(never);
  assert.equal(engine.runs("a"), false);
  assert.equal(engine.snapshot().phase, "stopping");
  const late = engine.lease(never);
  release();
  await stopped;
  (await late)();
  assert.deepEqual(log, ["start a", "stop"]);
  assert.deepEqual([engine.snapshot().choice, engine.runs("a")], [null, false]);
});

test("a stop waits no longer than the time to drain", async () => {
  const { engine, log } = world({ drainMs: 20 });
  await engine.start("a", never);
  const release = await engine.lease(never);
  await engine.stop(never);
  assert.deepEqual(log, ["start a", "stop"]);
  release();
  await engine.start("b", never);
  assert.equal(engine.runs("b"), true);
});

test("a stop that is given up leaves it running", async () => {
  const { engine, log } = world();
  await engine.start("a", never);
  const release = await engine.lease(never);
  const giveUp = new AbortController();
  const stopping = refusal(engine.stop(giveUp.signal));
  giveUp.abort();
  assert.equal((await stopping).code, "cancelled");
  assert.equal(engine.runs("a"), true);
  release();
  assert.deepEqual(log, ["start a"]);
});

test("it is idle when nobody uses it or waits for it for a while", async () => {
  const made = world();
  const { engine } = made;
  const isIdle = async (): Promise<boolean> => (await engine.observe("a")).idle;
  await engine.start("a", never);
  made.clock = 999;
  assert.equal(await isIdle(), false);
  made.clock = 1_000;
  assert.equal(await isIdle(), true);
  const unwant = engine.want();
  assert.deepEqual([(await engine.observe("a")).wanted, await isIdle()], [true, false]);
  const release = await engine.lease(never);
  unwant();
  unwant();
  made.clock = 5_000;
  assert.equal(await isIdle(), false);
  release();
  assert.equal(await isIdle(), false);
  made.clock = 6_000;
  assert.equal(await isIdle(), true);
});

test("too many at once are told that it is busy", () => {
  const { engine } = world({ atMost: 2 });
  const first = engine.want();
  engine.want();
  assert.throws(
    () => engine.want(),
    (error: unknown) => error instanceof GatewayError && error.code === "busy" && error.retryAfterMs === 5_000,
  );
  first();
  engine.want();
});

test("what is off is not looked for; an engine that comes is noticed once", async () => {
  const made = world();
  made.isInstalled = false;
  assert.deepEqual((await made.engine.observe(null)).cached, []);
  assert.equal((await made.engine.observe(null)).problem, null);
  assert.equal((await made.engine.observe("a")).problem, "there is none");
  assert.equal(made.found, 0);
  made.isInstalled = true;
  assert.equal((await made.engine.observe("a")).problem, null);
  await made.engine.observe("a");
  assert.equal(made.found, 1);
});

test("a crash leaves no choice behind", async () => {
  const made = world();
  await made.engine.start("a", never);
  made.crash();
  assert.deepEqual([made.engine.runs("a"), made.engine.snapshot().choice], [false, null]);
  await made.engine.start("b", never);
  assert.equal(made.engine.runs("b"), true);
  await made.engine.settled(never);
  await made.engine.close();
  await until("stopped", () => made.engine.snapshot().phase === "stopped");
});
