// What the engines of speech have in common: a queue of one, an end that cuts no answer off in time, and a start that fails.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { GatewayError } from "../../../../src/core/errors.ts";
import type { ServerProcess } from "../../../../src/engines/process/server-process.ts";
import { createSpeechEngine, type EngineRun, type SpeechEngine } from "../../../../src/engines/speech/speech-engine.ts";
import { refusal, until } from "../../../support/scratch.ts";

const never = new AbortController().signal;

interface World {
  readonly engine: SpeechEngine;
  readonly log: string[];
  /** Of each start, in order. */
  readonly runs: (EngineRun & { crash(reason: string): void; worn: boolean })[];
  clock: number;
  isInstalled: boolean;
  found: number;
}

interface Options {
  readonly drainMs?: number;
  readonly queueDepth?: number;
  readonly overlaps?: boolean;
}

function world({ drainMs = 60_000, queueDepth = 2, overlaps = true }: Options = {}): World {
  const made: Omit<World, "engine"> = { log: [], runs: [], clock: 0, isInstalled: true, found: 0 };
  const engine = createSpeechEngine(
    {
      find: () =>
        made.isInstalled ? Promise.resolve() : Promise.reject(new GatewayError("engine_missing", "there is none")),
      has: async (choice) => choice !== "absent",
      launch: async (choice) => {
        made.log.push(`start ${choice}`);
        if (choice === "bad") throw new GatewayError("engine_failed", "it does not start");
        let end = (_reason: string | null): void => undefined;
        const ended = new Promise<string | null>((resolve) => {
          end = resolve;
        });
        const process: ServerProcess = {
          pid: made.runs.length + 1,
          origin: "",
          ended,
          silentSince: () => null,
          stop: async () => {
            made.log.push(`stop ${choice}`);
            end(null);
          },
          kill: async (why) => end(why),
          settle: async () => undefined,
        };
        const run = { process, worn: false, isWorn: () => run.worn, crash: end };
        made.runs.push(run);
        return run;
      },
      overlaps,
    },
    {
      what: "answers",
      queueDepth,
      idleMs: 1_000,
      drainMs,
      now: () => made.clock,
      onChange: () => undefined,
      onFound: () => void made.found++,
    },
  );
  return Object.assign(made, { engine });
}

/** What must be there. */
function given<T>(value: T | null | undefined): T {
  assert.ok(value !== null && value !== undefined);
  return value;
}

test("requests have it one at a time, in order, and the queue is bounded", async () => {
  const { engine } = world();
  const first = await engine.take(never);
  const order: number[] = [];
  const leaving = new AbortController();
  const second = refusal(engine.take(leaving.signal));
  const third = engine.take(never).then((over) => (order.push(3), over));
  const busy = await refusal(engine.take(never));
  assert.deepEqual([busy.code, busy.retryAfterMs, engine.snapshot().users], ["busy", 5_000, 3]);
  leaving.abort();
  assert.equal((await second).code, "cancelled");
  const fourth = engine.take(never).then((over) => (order.push(4), over));
  assert.equal(engine.othersWait(), true);
  first();
  (await third)();
  (await fourth)();
  assert.deepEqual([order, engine.snapshot().users, engine.othersWait()], [[3, 4], 0, false]);
});

test("a stop waits for the answer under way, and no new one begins meanwhile", async () => {
  const { engine, log } = world();
  await engine.start("a", never);
  assert.deepEqual([engine.runs("a"), engine.runs("b"), engine.use("b")], [true, false, null]);
  const { release } = given(engine.use("a"));
  const stopped = engine.stop(never);
  await setImmediate();
  assert.deepEqual([engine.runs("a"), engine.use("a"), engine.snapshot().phase], [false, null, "stopping"]);
  release();
  await stopped;
  assert.deepEqual(log, ["start a", "stop a"]);
  assert.deepEqual([engine.snapshot().choice, engine.snapshot().phase], [null, "stopped"]);
});

test("a stop waits no longer than the time to drain, and one that is cancelled leaves it running", async () => {
  const late = world({ drainMs: 20 });
  await late.engine.start("a", never);
  given(late.engine.use("a"));
  await late.engine.stop(never);
  assert.deepEqual(late.log, ["start a", "stop a"]);

  const { engine, log } = world();
  await engine.start("a", never);
  const { release } = given(engine.use("a"));
  const abort = new AbortController();
  const stopping = refusal(engine.stop(abort.signal));
  abort.abort();
  assert.equal((await stopping).code, "cancelled");
  assert.equal(engine.runs("a"), true);
  release();
  assert.deepEqual(log, ["start a"]);
});

test("the next choice starts beside the one that answers; one that does not start costs nobody that one", async () => {
  const { engine, log } = world();
  await engine.start("a", never);
  const { release } = given(engine.use("a"));
  assert.equal((await refusal(engine.start("bad", never))).code, "engine_failed");
  assert.equal(engine.runs("a"), true);
  const changed = engine.start("b", never);
  await until("it waits for the answer", () => engine.snapshot().phase === "stopping");
  release();
  await changed;
  assert.deepEqual([engine.runs("b"), log], [true, ["start a", "start bad", "start b", "stop a"]]);

  const large = world({ overlaps: false });
  await large.engine.start("a", never);
  await large.engine.start("b", never);
  assert.deepEqual(large.log, ["start a", "stop a", "start b"]);
});

test("it is idle when it was not used for a while and nobody waits; and worn when its process says so", async () => {
  const made = world();
  const { engine } = made;
  const seen = async (): Promise<readonly boolean[]> => {
    const { wanted, idle, worn } = await engine.observe("a");
    return [wanted, idle, worn];
  };
  await engine.start("a", never);
  made.clock = 999;
  assert.deepEqual(await seen(), [false, false, false]);
  made.clock = 1_000;
  assert.deepEqual(await seen(), [false, true, false]);
  const over = await engine.take(never);
  assert.deepEqual(await seen(), [true, false, false]);
  const { release } = given(engine.use("a"));
  made.clock = 5_000;
  release();
  over();
  assert.deepEqual(await seen(), [false, false, false]);
  made.clock = 6_000;
  given(made.runs[0]).worn = true;
  assert.deepEqual(await seen(), [false, true, true]);
});

test("what is off is not looked for; an engine that comes is noticed once", async () => {
  const made = world();
  made.isInstalled = false;
  assert.equal((await made.engine.observe(null)).problem, null);
  assert.equal((await made.engine.observe("a")).problem, "there is none");
  assert.equal(made.found, 0);
  made.isInstalled = true;
  assert.equal((await made.engine.observe("a")).problem, null);
  await made.engine.observe("a");
  assert.equal(made.found, 1);
});

test("a crash is counted with its reason", async () => {
  const { engine, runs } = world();
  await engine.start("a", never);
  given(runs[0]).crash("it was ended by SIGKILL");
  await until("its end is noticed", () => engine.snapshot().phase === "stopped");
  const { crashes, exitReason, choice } = engine.snapshot();
  assert.deepEqual([crashes, exitReason, choice], [[0], "it was ended by SIGKILL", null]);
  await engine.start("b", never);
  await engine.stop(never);
  assert.deepEqual([engine.snapshot().crashes.length, engine.snapshot().exitReason], [1, ""]);
  await engine.start("b", never);
  await engine.close();
  await until("stopped", () => engine.snapshot().pid === null);
  assert.equal(engine.snapshot().crashes.length, 1);
});
