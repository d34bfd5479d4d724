// When a worker may be used: one failure is none, a loss is felt for a while, each time.
import assert from "node:assert/strict";
import { test } from "node:test";
import { afterProbe, type ProbeFault, unprobed, type WorkerRecord } from "../../../src/plan/worker-verdict.ts";

const stableMs = 10_000;

type Probe = readonly [at: number, fault: ProbeFault | null];

function yes(at: number): Probe {
  return [at, null];
}

function no(at: number, certain = false): Probe {
  return [at, { reason: "Refused", message: "nothing listens", certain }];
}

function after(...probes: readonly Probe[]): WorkerRecord {
  return probes.reduce((record, [at, fault]) => afterProbe(record, fault, at * 1000, stableMs), unprobed);
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

test("a lost worker is taken back once it has answered for a while, each time", () => {
  const lost = [yes(0), no(1, true)];
  assert.equal(after(...lost, yes(2)).reason, "Stabilizing");
  assert.equal(after(...lost, yes(2), yes(11)).verdict, "down");
  assert.equal(after(...lost, yes(2), no(5), yes(6), yes(15)).verdict, "down");
  assert.equal(after(...lost, yes(2), yes(12)).verdict, "up");
  const again = [...lost, yes(2), yes(12), no(13, true)];
  assert.equal(after(...again, yes(14), yes(23)).verdict, "down");
  assert.equal(after(...again, yes(14), yes(24)).verdict, "up");
});
