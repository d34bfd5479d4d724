// The queue of large prompts: how much one model reads at once, what passes, and what becomes of a prompt whose client left.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createPromptQueue, type PromptPermit, type PromptQueue } from "../../../src/scheduler/prompt-queue.ts";
import type { Entrance } from "../../../src/scheduler/requests.ts";
import { until } from "../../support/scratch.ts";

const miB = 1 << 20;
const id = "acme/a:Q8_0";
const stays = (): AbortSignal => new AbortController().signal;

interface World extends PromptQueue {
  /** Tickets that were taken and not given back. */
  tickets(): number;
  readonly stuck: string[];
}

function world(leftMs = 60_000): World {
  let tickets = 0;
  const stuck: string[] = [];
  const queue = createPromptQueue({
    enter: () => {
      tickets++;
      return { leave: () => void tickets-- } as Entrance;
    },
    onStuck: (model) => void stuck.push(model),
    leftMs,
  });
  return { ...queue, tickets: () => tickets, stuck };
}

/** Whether it has its permit by now. */
async function hasPermit(entered: Promise<PromptPermit | null>): Promise<boolean> {
  const soon = new Promise<false>((resolve) => setImmediate(resolve, false));
  return (await Promise.race([entered, soon])) !== false;
}

async function taken(entered: Promise<PromptPermit | null>): Promise<PromptPermit> {
  const value = await entered;
  assert.ok(value);
  return value;
}

describe("large prompts", () => {
  it("are read one at a time, in order; small ones and other models pass", async () => {
    const queue = world();
    const first = await taken(queue.enter(id, 60 * miB, stays()));
    const second = queue.enter(id, 60 * miB, stays());
    const third = queue.enter(id, 2 * miB, stays());
    assert.equal(await queue.enter(id, miB, stays()), null);
    assert.ok(await hasPermit(queue.enter("acme/b:Q8_0", 60 * miB, stays())));
    assert.equal(await hasPermit(second), false);
    assert.equal(queue.tickets(), 2);
    first.send(stays())();
    assert.equal(await hasPermit(second), true);
    assert.equal(await hasPermit(third), false);
    (await taken(second)).end();
    assert.equal(await hasPermit(third), true);
    assert.equal(queue.tickets(), 0);
  });

  it("are read together where they are small enough", async () => {
    const queue = world();
    const asked = Array.from({ length: 5 }, () => queue.enter(id, 4 * miB, stays()));
    assert.deepEqual(await Promise.all(asked.map(hasPermit)), [true, true, true, true, false]);
    const over = (await taken(asked[1] ?? Promise.resolve(null))).send(stays());
    over();
    over();
    assert.equal(await hasPermit(asked[4] ?? Promise.resolve(null)), true);
    assert.equal(await hasPermit(queue.enter(id, 4 * miB, stays())), false, "the second call frees nothing");
  });

  it("leave the queue without a trace", async () => {
    const queue = world();
    const first = await taken(queue.enter(id, 60 * miB, stays()));
    const leaver = new AbortController();
    const second = queue.enter(id, 60 * miB, leaver.signal);
    const third = queue.enter(id, 60 * miB, stays());
    leaver.abort();
    await assert.rejects(second, { code: "cancelled" });
    first.end();
    assert.equal(await hasPermit(third), true);
    await assert.rejects(queue.enter(id, 60 * miB, leaver.signal), { code: "cancelled" });
    assert.equal(queue.tickets(), 0);
  });

  it("hold their permit until the engine has closed the connection; an instance that does not is reported", async () => {
    const queue = world(20);
    const leaver = new AbortController();
    const first = await taken(queue.enter(id, 60 * miB, leaver.signal));
    const over = first.send(leaver.signal);
    leaver.abort();
    first.end();
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.deepEqual(queue.stuck, [], "nobody waits");
    const second = queue.enter(id, 60 * miB, stays());
    assert.equal(await hasPermit(second), false);
    await until("it is told", () => queue.stuck.length > 0);
    assert.equal(queue.stuck[0], id);
    over();
    assert.equal(await hasPermit(second), true);
    const told = queue.stuck.length;
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.equal(queue.stuck.length, told);
  });

  it("are refused where too many wait for the memory", async () => {
    const queue = world();
    const leaver = new AbortController();
    const asked = Array.from({ length: 9 }, () => queue.enter(id, 60 * miB, leaver.signal));
    await assert.rejects(queue.enter(id, 60 * miB, stays()), { code: "busy" });
    leaver.abort();
    await Promise.allSettled(asked);
    assert.equal(queue.tickets(), 0);
  });
});
