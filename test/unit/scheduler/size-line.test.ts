// Sizes take turns in the order in which they were first asked for.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createSizeLine, type Place } from "../../../src/scheduler/size-line.ts";

const never = (): Promise<void> => new Promise(() => undefined);
const done = (): Promise<void> => Promise.resolve();

async function hasBegun({ begun }: Place): Promise<boolean> {
  return Promise.race([begun.then(() => true), new Promise<false>((resolve) => setImmediate(() => resolve(false)))]);
}

test("the first begins at once, the next when everybody of it has left, and other models have a line of their own", async () => {
  const line = createSizeLine();
  assert.equal(line.isBusy("a"), false);
  const [first, again, second, third] = [line.join("a", 1), line.join("a", 1), line.join("a", 2), line.join("a", 3)];
  const elsewhere = line.join("b", 2);
  assert.deepEqual(await Promise.all([first, again, second, third, elsewhere].map(hasBegun)), [
    true,
    true,
    false,
    false,
    true,
  ]);
  first.leave();
  first.leave();
  assert.equal(await hasBegun(second), false, "one is still in the turn");
  again.leave();
  assert.deepEqual([await hasBegun(second), await hasBegun(third)], [true, false]);
  second.leave();
  assert.equal(await hasBegun(third), true);
  third.leave();
  assert.equal(line.isBusy("a"), false);
  assert.equal(line.isBusy("b"), true);
});

test("whoever leaves while waiting gives up the place, and a turn that nobody wants is passed over", async () => {
  const line = createSizeLine();
  const [first, second, third] = [line.join("a", 1), line.join("a", 2), line.join("a", 3)];
  second.leave();
  assert.equal(await hasBegun(third), false);
  first.leave();
  assert.deepEqual([await hasBegun(second), await hasBegun(third)], [false, true]);
});

test("a turn takes others in until its size is in force; then only while nobody waits for another", async () => {
  const line = createSizeLine();
  const first = line.join("a", 1);
  const other = line.join("a", 2);
  const early = line.join("a", 1);
  assert.equal(await hasBegun(early), true, "the change is under way: it is the same for both");
  await first.change(done);
  const late = line.join("a", 1);
  assert.equal(await hasBegun(late), false, "one busy client would keep the others waiting for ever");
  const joins = line.join("a", 2);
  for (const place of [first, early]) place.leave();
  assert.deepEqual(await Promise.all([other, joins, late].map(hasBegun)), [true, true, false]);
  for (const place of [other, joins]) place.leave();
  await late.change(done);
  assert.equal(await hasBegun(line.join("a", 1)), true, "nobody waits for another size");
});

test("one change is made for a turn, another where it did not last, and another where it failed", async () => {
  const line = createSizeLine();
  const [first, second] = [line.join("a", 1), line.join("a", 1)];
  let made = 0;
  const make = async (): Promise<void> => {
    made++;
  };
  const change = first.change(make);
  assert.equal(second.change(make), change);
  await change;
  const anew = first.change(make, change);
  assert.equal(second.change(make, change), anew);
  await anew;
  assert.equal(made, 2);
  const failure = new Error("no");
  const failed = first.change(() => Promise.reject(failure), anew);
  assert.equal(second.change(make, anew), failed);
  await assert.rejects(failed, failure);
  const joined = line.join("a", 1);
  await joined.change(make);
  assert.equal(made, 3);
});

test("a change that nobody waits for any more is told so", () => {
  const line = createSizeLine();
  const [first, second] = [line.join("a", 1), line.join("a", 1)];
  let signal: AbortSignal | undefined;
  void first.change((deserted) => {
    signal = deserted;
    return never();
  });
  first.leave();
  assert.equal(signal?.aborted, false);
  second.leave();
  assert.equal(signal?.aborted, true);
});
