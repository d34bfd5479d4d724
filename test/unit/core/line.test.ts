// A bounded queue: how many go on at once, which are refused, and what becomes of those that leave.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createLine } from "../../../src/core/line.ts";

test("a few go on, some wait, the rest is refused; who leaves takes no place", async () => {
  const line = createLine({ width: 2, depth: 2, refusal: () => new Error("full"), gone: () => new Error("left") });
  const leaver = new AbortController();
  const stays = new AbortController().signal;
  const first = [await line.take(stays), await line.take(stays)];
  const leaving = line.take(leaver.signal);
  const waiting = line.take(stays);
  await assert.rejects(line.take(stays), /full/);
  leaver.abort();
  await assert.rejects(leaving, /left/);
  const last = line.take(stays);
  assert.equal(line.waiting(), 2);
  // A second call of the same gives no second place.
  first[0]?.();
  first[0]?.();
  const third = await waiting;
  assert.equal(line.waiting(), 1);
  third();
  (await last)();
  await assert.rejects(line.take(leaver.signal), /left/);
});
