// Turns and remembered answers: how many go on at once, who is refused, and what ends when everybody has left.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { rememberAnswers } from "../../../../src/http/proxy/remembered.ts";
import { createTurns } from "../../../../src/http/server/turns.ts";

/** Work that ends when it is told to. */
function held(): { started: number; readonly ends: (() => void)[]; task(): Promise<number> } {
  const work = {
    started: 0,
    ends: [] as (() => void)[],
    task: async () => {
      const number = ++work.started;
      await new Promise<void>((resolve) => void work.ends.push(resolve));
      return number;
    },
  };
  return work;
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("turns", () => {
  it("a few go on, some wait, the rest is refused; who leaves takes no turn", async () => {
    const turns = createTurns({ atOnce: 2, waiting: 2, refusal: () => new Error("full") });
    const work = held();
    const leaver = new AbortController();
    const stays = new AbortController().signal;
    const asked = [
      turns(work.task, stays),
      turns(work.task, stays),
      turns(work.task, leaver.signal),
      turns(work.task, stays),
    ];
    await assert.rejects(turns(work.task, stays), /full/);
    assert.equal(work.started, 2);
    leaver.abort(new Error("left"));
    await assert.rejects(asked[2] ?? Promise.resolve(), /left/);
    const late = turns(work.task, stays);
    for (const started of [3, 4]) {
      work.ends.shift()?.();
      await settled();
      assert.equal(work.started, started);
    }
    for (const end of work.ends) end();
    assert.deepEqual(await Promise.all([asked[0], asked[1], asked[3], late]), [1, 2, 3, 4]);
    // What failed gives its turn on, too.
    for (let round = 0; round < 5; round++)
      await assert.rejects(
        turns(async () => Promise.reject(new Error("broke")), stays),
        /broke/,
      );
    await assert.rejects(turns(work.task, leaver.signal), /left/);
  });
});

describe("remembered answers", () => {
  it("one that is on its way goes on for whoever is left, and ends with the last of them", async () => {
    const remembered = rememberAnswers<number>({ forMs: 1000, atMost: 10, now: () => 0 });
    let asked = 0;
    let ended = 0;
    const ask = (signal: AbortSignal): Promise<number> => {
      asked++;
      return new Promise((_, reject) => {
        signal.addEventListener("abort", () => {
          ended++;
          reject(signal.reason as Error);
        });
      });
    };
    const [one, two] = [new AbortController(), new AbortController()];
    const answers = [remembered("a", ask, one.signal), remembered("a", ask, two.signal)];
    one.abort();
    assert.deepEqual([asked, ended], [1, 0]);
    two.abort();
    assert.equal(ended, 1);
    // Who asks now does not get what was broken off.
    const next = remembered("a", async () => 5, new AbortController().signal);
    for (const answer of answers) await assert.rejects(answer, { code: "cancelled" });
    assert.equal(await next, 5);
    assert.equal(await remembered("a", async () => 6, new AbortController().signal), 5);
  });

  it("one that has come is kept, also when who asked leaves then", async () => {
    const remembered = rememberAnswers<number>({ forMs: 1000, atMost: 10, now: () => 0 });
    const asker = new AbortController();
    assert.equal(await remembered("a", async () => 1, asker.signal), 1);
    asker.abort();
    assert.equal(await remembered("a", async () => 2, new AbortController().signal), 1);
  });
});
