// Turns of large prompts: how much is in work at once, who passes, and what becomes of a prompt whose client left.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { createPromptTurns, type PromptTurn, type PromptTurns } from "../../../src/http/prompt-turns.ts";
import type { Ticket } from "../../../src/http/waiting.ts";
import { until } from "../../support/scratch.ts";

const miB = 1 << 20;
const id = "acme/a:Q8_0";
const stays = (): AbortSignal => new AbortController().signal;

interface World extends PromptTurns {
  /** Tickets that were taken and not given back. */
  tickets(): number;
  readonly stuck: string[];
}

function world(leftMs = 60_000): World {
  let tickets = 0;
  const stuck: string[] = [];
  const turns = createPromptTurns({
    enter: () => {
      tickets++;
      return { leave: () => void tickets-- } as Ticket;
    },
    onStuck: (model) => void stuck.push(model),
    leftMs,
  });
  return { ...turns, tickets: () => tickets, stuck };
}

/** Whether it has its turn by now. */
async function hasTurn(turn: Promise<PromptTurn | null>): Promise<boolean> {
  const soon = new Promise<false>((resolve) => setImmediate(resolve, false));
  return (await Promise.race([turn, soon])) !== false;
}

async function taken(turn: Promise<PromptTurn | null>): Promise<PromptTurn> {
  const value = await turn;
  assert.ok(value);
  return value;
}

describe("turns of large prompts", () => {
  it("are one at a time, in order; small ones and other models pass", async () => {
    const turns = world();
    const first = await taken(turns.enter(id, 60 * miB, stays()));
    const second = turns.enter(id, 60 * miB, stays());
    const third = turns.enter(id, 2 * miB, stays());
    assert.equal(await turns.enter(id, miB, stays()), null);
    assert.ok(await hasTurn(turns.enter("acme/b:Q8_0", 60 * miB, stays())));
    assert.equal(await hasTurn(second), false);
    assert.equal(turns.tickets(), 2);
    first.send(stays())();
    assert.equal(await hasTurn(second), true);
    assert.equal(await hasTurn(third), false);
    (await taken(second)).end();
    assert.equal(await hasTurn(third), true);
    assert.equal(turns.tickets(), 0);
  });

  it("are shared by as many as are small enough together", async () => {
    const turns = world();
    const asked = Array.from({ length: 5 }, () => turns.enter(id, 4 * miB, stays()));
    assert.deepEqual(await Promise.all(asked.map(hasTurn)), [true, true, true, true, false]);
    const over = (await taken(asked[1] ?? Promise.resolve(null))).send(stays());
    over();
    over();
    assert.equal(await hasTurn(asked[4] ?? Promise.resolve(null)), true);
    assert.equal(await hasTurn(turns.enter(id, 4 * miB, stays())), false, "the second call frees nothing");
  });

  it("are left without a trace by who waits", async () => {
    const turns = world();
    const first = await taken(turns.enter(id, 60 * miB, stays()));
    const leaver = new AbortController();
    const second = turns.enter(id, 60 * miB, leaver.signal);
    const third = turns.enter(id, 60 * miB, stays());
    leaver.abort();
    await assert.rejects(second, { code: "cancelled" });
    first.end();
    assert.equal(await hasTurn(third), true);
    await assert.rejects(turns.enter(id, 60 * miB, leaver.signal), { code: "cancelled" });
    assert.equal(turns.tickets(), 0);
  });

  it("last until the engine has done with a prompt whose client left; where it does not, it is told", async () => {
    const turns = world(20);
    const leaver = new AbortController();
    const first = await taken(turns.enter(id, 60 * miB, leaver.signal));
    const over = first.send(leaver.signal);
    leaver.abort();
    first.end();
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.deepEqual(turns.stuck, [], "nobody waits");
    const second = turns.enter(id, 60 * miB, stays());
    assert.equal(await hasTurn(second), false);
    await until("it is told", () => turns.stuck.length > 0);
    assert.equal(turns.stuck[0], id);
    over();
    assert.equal(await hasTurn(second), true);
    const told = turns.stuck.length;
    await new Promise((resolve) => setTimeout(resolve, 60));
    assert.equal(turns.stuck.length, told);
  });

  it("are waited for by no more than fits in the memory", async () => {
    const turns = world();
    const leaver = new AbortController();
    const asked = Array.from({ length: 9 }, () => turns.enter(id, 60 * miB, leaver.signal));
    await assert.rejects(turns.enter(id, 60 * miB, stays()), { code: "busy" });
    leaver.abort();
    await Promise.allSettled(asked);
    assert.equal(turns.tickets(), 0);
  });
});
