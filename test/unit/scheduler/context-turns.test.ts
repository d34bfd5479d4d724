// Context sizes take turns, in the order in which they were first asked for.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type ContextEvent,
  type ContextTurn,
  type ContextTurns,
  decideContext,
} from "../../../src/scheduler/state/context-turns.ts";

interface Scene {
  send(event: ContextEvent): string;
  join(request: number, size: number, model?: string): string;
  leave(request: number): string;
  /** A request whose size was changed by another client before it had its lease. */
  again(request: number, size: number): string;
  /** Ends the change that is under way. */
  changed(error?: unknown): string;
  isBusy(model: string): boolean;
}

/** Effects in short: `change 1`, `again 1`, `ready 7`, `refuse 7`, `cancel 1`; sizes and requests are told by their numbers. */
function scene(): Scene {
  const turns: ContextTurns = new Map();
  const changing: ContextTurn[] = [];
  const send = (event: ContextEvent): string =>
    decideContext(turns, event)
      .map((effect) => {
        if (effect.kind === "ready" || effect.kind === "refuse") return `${effect.kind} ${effect.request}`;
        if (effect.kind === "change") changing.push(effect.turn);
        return `${effect.kind === "change" && effect.turn.isRepeated ? "again" : effect.kind} ${effect.turn.size}`;
      })
      .join(", ");
  return {
    send,
    join: (request, size, model = "a") => send({ kind: "join", request, model, size, isRepeated: false }),
    leave: (request) => send({ kind: "leave", request }),
    again: (request, size) => send({ kind: "join", request, model: "a", size, isRepeated: true }),
    changed: (error = null) => {
      const turn = changing.shift();
      assert.ok(turn);
      return send({ kind: "changed", turn, error });
    },
    isBusy: (model) => turns.has(model),
  };
}

test("the first begins at once, the next when all of it have left, and other models have turns of their own", () => {
  const { join, leave, changed, isBusy } = scene();
  assert.equal(isBusy("a"), false);
  assert.deepEqual([join(1, 512), join(2, 512), join(3, 1024), join(4, 2048)], ["change 512", "", "", ""]);
  assert.equal(join(5, 1024, "b"), "change 1024");
  assert.equal(changed(), "ready 1, ready 2");
  assert.deepEqual([leave(1), leave(1), leave(2)], ["", "", "change 1024"]);
  assert.equal(changed(), "ready 5");
  assert.equal(changed(), "ready 3");
  assert.deepEqual([leave(3), changed(), leave(4)], ["change 2048", "ready 4", ""]);
  assert.deepEqual([isBusy("a"), isBusy("b")], [false, true]);
});

test("a request that leaves gives up its place; a turn without requests is passed over, its change is cancelled", () => {
  const { join, leave } = scene();
  assert.deepEqual([join(1, 1), join(2, 2), join(3, 3)], ["change 1", "", ""]);
  assert.equal(leave(2), "");
  assert.equal(leave(1), "cancel 1, change 3");
});

test("a turn takes others in until its size is in force; then only while no other size is waited for", () => {
  const { join, leave, changed } = scene();
  assert.deepEqual([join(1, 1), join(2, 2), join(3, 1)], ["change 1", "", ""]);
  assert.equal(changed(), "ready 1, ready 3");
  assert.deepEqual([join(4, 1), join(5, 2)], ["", ""], "one busy client would keep the others waiting for ever");
  assert.deepEqual([leave(1), leave(3)], ["", "change 2"]);
  assert.equal(changed(), "ready 2, ready 5");
  assert.deepEqual([leave(2), leave(5), changed()], ["", "change 1", "ready 4"]);
  assert.equal(join(6, 1), "ready 6", "no other size is waited for");
});

test("one change is made for a turn, another where it did not last, and another where it failed", () => {
  const { join, again, changed, leave } = scene();
  assert.deepEqual([join(1, 1), join(2, 1), changed()], ["change 1", "", "ready 1, ready 2"]);
  assert.deepEqual([leave(1), again(3, 1)], ["", ""], "the second one has its lease, or comes as well");
  assert.deepEqual([leave(2), again(4, 1), changed()], ["again 1", "", "ready 3, ready 4"]);
  assert.deepEqual([leave(3), leave(4)], ["", ""]);
  assert.deepEqual([join(5, 1), join(6, 1), changed(new Error("no"))], ["change 1", "", "refuse 5, refuse 6"]);
  assert.deepEqual([leave(5), join(7, 1), changed()], ["", "change 1", "ready 7"]);
});
