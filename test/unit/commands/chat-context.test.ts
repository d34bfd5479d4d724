// Each chat runs under its own size, whoever else changes it when; on a made-up engine whose every step is a turn of the
// event loop, so that a change can come in between any two.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import fc from "fast-check";
import {
  type ChatContext,
  type ChatContextMode,
  contextOf,
  createChatContext,
} from "../../../src/commands/chat-context.ts";
import { type ErrorCode } from "../../../src/core/error-catalog.ts";
import { GatewayError } from "../../../src/core/errors.ts";
import type { CachedModel } from "../../../src/plan/observed.ts";

const model = { id: "acme/a:Q8_0", upstreamId: "acme/a:Q8_0", nCtxTrain: 8192 } as CachedModel;

interface World {
  readonly chats: ChatContext;
  /** Sizes in the order in which they were put in force. */
  readonly changes: number[];
  /** Puts a size in force as another client's call does: waits for the answers in flight. */
  set(size: number): Promise<void>;
  /** What every change fails with. */
  fails: ErrorCode | null;
}

function world(mode: ChatContextMode = "apply", first = 8192): World {
  const changes: number[] = [];
  let size = first;
  let leases = 0;
  let held = 0;
  let queue: Promise<void> = Promise.resolve();

  async function reload(next: number): Promise<void> {
    if (next === size) return;
    held++;
    await turn();
    while (leases > 0) await turn();
    size = next;
    changes.push(next);
    held--;
    await turn();
  }

  const self: World = {
    changes,
    fails: null,
    set: (next) => (queue = queue.then(() => reload(next))),
    chats: createChatContext({
      requireContext: async () => undefined,
      mode,
      catalog: { view: () => ({ contextSet: size, contextLength: size }) as never },
      edits: {
        setContextSize: async (_name, asked) => {
          await turn();
          if (self.fails) throw new GatewayError(self.fails, "no");
          await self.set(asked);
          await turn();
          return { id: model.id, ctxSize: asked };
        },
      },
      scheduler: {
        tryAcquire: () => null,
        enter: () => ({ leave: () => undefined, again: () => undefined }) as never,
        acquire: async (id, signal) => {
          for (;;) {
            await turn();
            if (signal.aborted) throw new GatewayError("cancelled", "the client left");
            if (held > 0) continue;
            leases++;
            const instance = {
              id,
              origin: "",
              key: "",
              ctxSize: size,
              nCtx: size,
              pid: null,
              workers: [],
              slots: 4,
              task: "completion" as const,
              retain: () => () => undefined,
            };
            return { instance, overdue: () => null, release: () => void leases-- };
          }
        },
      },
    }),
  };
  return self;
}

/** A chat that lasts for some turns of the loop; the size that it ran under. */
async function chat(
  { chats }: World,
  size: number | undefined,
  lasts = 2,
  signal: AbortSignal = new AbortController().signal,
): Promise<number | null> {
  const { instance, release } = await chats.acquire(model, size, signal);
  for (let passed = 0; passed < lasts; passed++) await turn();
  release();
  return contextOf(model, instance);
}

test("each of many chats runs under its own size, in the order in which the sizes were asked for", async () => {
  const here = world();
  const sizes = Array.from({ length: 30 }, (_, index) => 1024 + 64 * (index % 15));
  assert.deepEqual(await Promise.all(sizes.map((size) => chat(here, size))), sizes);
  assert.deepEqual(here.changes, sizes.slice(0, 15));
});

test("another client's change that comes between a chat's change and its answer is undone, not suffered", async () => {
  for (let wait = 0; wait < 12; wait++) {
    const here = world();
    const answer = chat(here, 1024);
    for (let passed = 0; passed < wait; passed++) await turn();
    await here.set(512);
    assert.equal(await answer, 1024, `after ${wait} turns`);
  }
});

test("whatever the chats, their lengths and the changes of others: each has its size, none waits for ever", async () => {
  const asked = fc.record({
    size: fc.option(fc.constantFrom(256, 512, 1024, 4096), { nil: undefined }),
    lasts: fc.nat(6),
    after: fc.nat(10),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(asked, { maxLength: 20 }),
      fc.array(fc.nat(20), { maxLength: 3 }),
      async (all, others) => {
        const here = world();
        const chats = all.map(async ({ size, lasts, after }) => {
          for (let passed = 0; passed < after; passed++) await turn();
          const had = await chat(here, size, lasts);
          if (size !== undefined) assert.equal(had, size);
        });
        const changes = others.map(async (after) => {
          for (let passed = 0; passed < after; passed++) await turn();
          await here.set(2048 + after);
        });
        await Promise.all([...chats, ...changes]);
      },
    ),
    { numRuns: 150 },
  );
});

test("one client that asks again and again does not keep another waiting", async () => {
  const here = world("apply", 512);
  let over = false;
  const busy = async (): Promise<void> => {
    while (!over) assert.equal(await chat(here, 512), 512);
  };
  const clients = Promise.all([busy(), busy(), busy()]);
  for (let count = 0; count < 5; count++) assert.equal(await chat(here, 1024), 1024);
  over = true;
  await clients;
});

test("a size of somebody who fights for it is given up at last, and the chat is told what it has", async () => {
  const here = world();
  let over = false;
  const fighting = async (): Promise<void> => {
    for (let size = 300; !over; size = 600 - size + 1) await here.set(size);
  };
  const fight = fighting();
  const had = await chat(here, 1024);
  over = true;
  await fight;
  assert.ok(had === 1024 || (had !== null && had < 400), String(had));
});

test("grow takes the larger of what is asked and what is there, in line too; ignore takes neither", async () => {
  const grow = world("grow", 1024);
  assert.deepEqual(
    await Promise.all([512, 2048, 1024, 4096, 256].map((size) => chat(grow, size))),
    [1024, 2048, 2048, 4096, 4096],
  );
  assert.deepEqual(grow.changes, [2048, 4096]);
  const ignore = world("ignore", 1024);
  assert.equal(await chat(ignore, 512), 1024);
  assert.deepEqual(ignore.changes, []);
});

test("never above the trained context, nor below what the engine can run", async () => {
  const here = world("apply", 1024);
  assert.equal(await chat(here, 1_000_000), 8192);
  assert.equal(await chat(here, 1), 256);
  assert.deepEqual(here.changes, [8192, 256]);
});

test("a client that leaves gives up its place; the change of one that has left holds up nobody", async () => {
  const here = world();
  const long = chat(here, 512, 40);
  const [waits, changes] = [new AbortController(), new AbortController()];
  const gone = [chat(here, 1024, 1, changes.signal), chat(here, 2048, 1, waits.signal)];
  const next = chat(here, 4096);
  for (let passed = 0; passed < 20; passed++) await turn();
  waits.abort();
  changes.abort();
  for (const { status } of await Promise.allSettled(gone)) assert.equal(status, "rejected");
  assert.deepEqual(await Promise.all([long, next]), [512, 4096]);
  assert.ok(!here.changes.includes(2048), String(here.changes));
});

test("a change that fails is told to those who wait for it, and the next ones have theirs tried", async () => {
  const here = world();
  here.fails = "suspended";
  const outcomes = await Promise.allSettled([
    chat(here, 512),
    chat(here, 512),
    chat(here, 1024),
    chat(here, undefined),
  ]);
  assert.deepEqual(
    outcomes.map((outcome) => (outcome.status === "fulfilled" ? outcome.value : (outcome.reason as GatewayError).code)),
    ["suspended", "suspended", "suspended", 8192],
  );
  here.fails = null;
  assert.equal(await chat(here, 512), 512);
});
