// When a worker may be used: one failure is none, a loss is felt for a while, and flapping is bounded.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Sighting, sighted, unprobed, type WorkerRecord } from "../../../src/plan/worker-verdict.ts";

const stableMs = 10_000;
const seconds = (at: number): number => at * 1000;

function yes(at: number): Sighting {
  return { kind: "answered", at: seconds(at) };
}

function no(at: number, certain = false): Sighting {
  return { kind: "failed", at: seconds(at), reason: "Refused", message: "nothing listens", certain };
}

function after(...sightings: readonly Sighting[]): WorkerRecord {
  return sightings.reduce((record, sighting) => sighted(record, sighting, stableMs), unprobed);
}

test("the first look decides", () => {
  assert.equal(unprobed.verdict, "unprobed");
  assert.equal(after(yes(0)).verdict, "up");
  const { verdict, reason } = after(no(0));
  assert.deepEqual([verdict, reason], ["down", "Refused"]);
});

test("a worker that was down at the start is taken at its first answer", () =>
  assert.equal(after(no(0), no(5), yes(10)).verdict, "up"));

test("one failure is none, two in a row are a loss, and one that is certain is", () => {
  assert.equal(after(yes(0), no(5)).verdict, "up");
  assert.equal(after(yes(0), no(5), yes(6), no(7), yes(8), no(9)).verdict, "up");
  assert.equal(after(yes(0), no(5), no(6)).verdict, "down");
  assert.equal(after(yes(0), no(5, true)).verdict, "down");
});

test("a lost worker is taken back once it has answered for a while, and every further loss doubles that", () => {
  const lost = [yes(0), no(1, true)];
  assert.equal(after(...lost, yes(2)).reason, "Stabilizing");
  assert.equal(after(...lost, yes(2), yes(11)).verdict, "down");
  assert.equal(after(...lost, yes(2), yes(12)).verdict, "up");
  const again = [...lost, yes(2), yes(12), no(13, true)];
  assert.equal(after(...again, yes(14), yes(33)).verdict, "down");
  assert.equal(after(...again, yes(14), yes(34)).verdict, "up");
});

test("losses are forgotten after ten minutes", () => {
  const record = after(yes(0), no(1, true), yes(2), yes(12), yes(700), no(701, true));
  assert.equal(record.losses.length, 1);
});

test("a worker that goes again while it is watched counts as flapping and stays out longer and longer", () => {
  let record = after(yes(0));
  let changes = 0;
  for (let at = 1; at <= 600; at++) {
    const next = sighted(record, at % 5 < 3 ? yes(at) : no(at, true), stableMs);
    if ((next.verdict === "up") !== (record.verdict === "up")) changes++;
    record = next;
  }
  assert.equal(changes, 1);
  assert.equal(sighted(record, yes(601), stableMs).reason, "Flapping");
});

test("whatever a worker does, its changes are few", () => {
  // Up just long enough each time: the worst that one can do.
  let record = after(yes(0));
  const changes: number[] = [];
  for (let at = 1; at <= 600; at++) {
    const next = sighted(record, record.verdict === "up" ? no(at, true) : yes(at), stableMs);
    if (next.verdict !== record.verdict) changes.push(at);
    record = next;
  }
  const worstMinute = Math.max(...changes.map((from) => changes.filter((at) => at >= from && at < from + 60).length));
  assert.ok(worstMinute <= 5, `${worstMinute} changes in a minute: ${changes.join(" ")}`);
  assert.ok(changes.length <= 14, changes.join(" "));
});
