// Context sizes take turns, in the order in which they were first asked for.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { ContextTurns } from "../../../src/commands/context-turns.ts";

interface Scene {
  /** Each of these returns what it brought about: `change 1`, `again 1`, `ready 7`, `refuse 7`, `cancel 1`. */
  join(request: number, size: number, model?: string): Promise<string>;
  leave(request: number): Promise<string>;
  /** A request whose size was changed by another client before it had its lease. */
  again(request: number, size: number): Promise<string>;
  /** Ends the change that is under way. */
  changed(error?: Error): Promise<string>;
  isAsked(model: string): boolean;
}

function scene(): Scene {
  let told: string[] = [];
  const changing: ((error?: Error) => void)[] = [];
  const requests = new Map<number, { readonly left: AbortController; done(): void }>();
  const turns = new ContextTurns((_model, size, isRepeated, signal) => {
    told.push(`${isRepeated ? "again" : "change"} ${size}`);
    const cancel = (): void => void told.push(`cancel ${size}`);
    signal.addEventListener("abort", cancel);
    return new Promise((resolve, reject) => {
      changing.push((error) => {
        signal.removeEventListener("abort", cancel);
        if (error) reject(error);
        else resolve();
      });
    });
  });

  async function news(): Promise<string> {
    await turn();
    const all = told.join(", ");
    told = [];
    return all;
  }

  function join(request: number, size: number, isRepeated: boolean, model = "a"): Promise<string> {
    const left = new AbortController();
    const use = (): Promise<void> => {
      told.push(`ready ${request}`);
      return new Promise((done) => void requests.set(request, { left, done }));
    };
    requests.set(request, { left, done: () => undefined });
    turns.run({ model, size, isRepeated }, left.signal, use).catch(() => {
      if (!left.signal.aborted) told.push(`refuse ${request}`);
    });
    return news();
  }

  return {
    join: (request, size, model) => join(request, size, false, model),
    again: (request, size) => join(request, size, true),
    leave: (request) => {
      requests.get(request)?.left.abort();
      requests.get(request)?.done();
      return news();
    },
    changed: (error) => {
      const end = changing.shift();
      assert.ok(end);
      end(error);
      return news();
    },
    isAsked: (model) => turns.isAsked(model),
  };
}

test("the first begins at once, the next when all of it have left, and other models have turns of their own", async () => {
  const { join, leave, changed, isAsked } = scene();
  assert.equal(isAsked("a"), false);
  assert.equal(await join(1, 512), "change 512");
  assert.deepEqual([await join(2, 512), await join(3, 1024), await join(4, 2048)], ["", "", ""]);
  assert.equal(await join(5, 1024, "b"), "change 1024");
  assert.equal(await changed(), "ready 1, ready 2");
  assert.deepEqual([await leave(1), await leave(1), await leave(2)], ["", "", "change 1024"]);
  assert.equal(await changed(), "ready 5");
  assert.equal(await changed(), "ready 3");
  assert.deepEqual([await leave(3), await changed(), await leave(4)], ["change 2048", "ready 4", ""]);
  assert.deepEqual([isAsked("a"), isAsked("b")], [false, true]);
});

test("a request that leaves gives up its place; a turn without requests is passed over, its change is cancelled", async () => {
  const { join, leave } = scene();
  assert.deepEqual([await join(1, 1), await join(2, 2), await join(3, 3)], ["change 1", "", ""]);
  assert.equal(await leave(2), "");
  assert.equal(await leave(1), "cancel 1, change 3");
});

test("a turn takes others in until its size is in force; then only while no other size is waited for", async () => {
  const { join, leave, changed } = scene();
  assert.deepEqual([await join(1, 1), await join(2, 2), await join(3, 1)], ["change 1", "", ""]);
  assert.equal(await changed(), "ready 1, ready 3");
  const busy = "one busy client would keep the others waiting for ever";
  assert.deepEqual([await join(4, 1), await join(5, 2)], ["", ""], busy);
  assert.deepEqual([await leave(1), await leave(3)], ["", "change 2"]);
  assert.equal(await changed(), "ready 2, ready 5");
  assert.deepEqual([await leave(2), await leave(5), await changed()], ["", "change 1", "ready 4"]);
  assert.equal(await join(6, 1), "ready 6", "no other size is waited for");
});

test("one change is made for a turn, another where it did not last, and another where it failed", async () => {
  const { join, again, changed, leave } = scene();
  assert.deepEqual([await join(1, 1), await join(2, 1), await changed()], ["change 1", "", "ready 1, ready 2"]);
  assert.deepEqual([await leave(1), await again(3, 1)], ["", ""], "the second one has its lease, or comes as well");
  assert.deepEqual([await leave(2), await again(4, 1), await changed()], ["again 1", "", "ready 3, ready 4"]);
  assert.deepEqual([await leave(3), await leave(4)], ["", ""]);
  assert.deepEqual([await join(5, 1), await join(6, 1)], ["change 1", ""]);
  assert.equal(await changed(new Error("no")), "refuse 5, refuse 6");
  assert.deepEqual([await join(7, 1), await changed()], ["change 1", "ready 7"]);
});
