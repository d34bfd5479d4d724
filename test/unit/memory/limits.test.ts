// How much models may take, and what a process is found to have taken.
import assert from "node:assert/strict";
import { test } from "node:test";
import { toDesired } from "../../../src/desired/document/document.ts";
import { validateDocument } from "../../../src/desired/document/validate.ts";
import { sharesOf } from "../../../src/memory/limits.ts";
import { measuredBytes } from "../../../src/memory/measure.ts";

const gibibyte = 2 ** 30;
const devices = new Map([
  ["Host", { total: 8 * gibibyte, free: 5 * gibibyte }],
  ["CUDA0", { total: 24 * gibibyte, free: 24 * gibibyte }],
]);
const held = new Map([["Host", 2 * gibibyte]]);

/** GiB, by `memory` of a document. */
function limits(memory: object): unknown {
  const checked = validateDocument({ version: 1, memory });
  assert.ok(checked.ok, JSON.stringify(checked));
  const all = sharesOf(devices, held, toDesired(checked.tree).memory);
  assert.deepEqual(
    [...all.values()].map(({ total, others }) => [total / gibibyte, others / gibibyte]),
    [
      [8, 1],
      [24, 0],
    ],
  );
  return Object.fromEntries([...all].map(([device, { limit }]) => [device, limit / gibibyte]));
}

test("models may take what is free and what they hold, without a reserve, and no more than the budget", () => {
  assert.deepEqual(limits({}), { Host: 6.5, CUDA0: 23 }, "a sixteenth stays free, at most 1 GiB");
  assert.deepEqual(limits({ reserve: "512MiB" }), { Host: 6.5, CUDA0: 23.5 });
  assert.deepEqual(limits({ reserve: { host: "2 GiB", cuda0: 0 } }), { Host: 5, CUDA0: 24 });
  assert.deepEqual(limits({ budget: { CUDA0: "1.5GiB" } }), { Host: 6.5, CUDA0: 1.5 });
  assert.deepEqual(limits({ budget: 4 * gibibyte, reserve: "6GiB" }), { Host: 1, CUDA0: 4 });
  assert.deepEqual(limits({ reserve: "9GiB" }), { Host: 0, CUDA0: 15 });
});

test("a size that cannot be understood is told", () => {
  for (const memory of [
    { reserve: "80%" },
    { reserve: { Host: "2gb" } },
    { budget: -1 },
    { budget: [1] },
    { most: 1 },
  ]) {
    const checked = validateDocument({ version: 1, memory });
    assert.ok(!checked.ok && checked.problems.length === 1, JSON.stringify([memory, checked]));
    assert.deepEqual(checked.problems[0]?.path[0], "memory");
  }
  const checked = validateDocument({ version: 1, memory: { reserve: "80%" } });
  assert.match(
    checked.ok ? "" : (checked.problems[0]?.message ?? ""),
    /^"80%" is not of the form a number of bytes or a size/,
  );
});

test("weights count once, and buffers that are not touched yet count", () => {
  const parts = { model: 5_000, context: 1_000, compute: 500 };
  const measured = (own: number, files: number): number | undefined =>
    measuredBytes({ own, files }, new Map([["Host", parts]])).get("Host");
  assert.equal(measured(1_600, 5_100), 6_500, "mapped");
  assert.equal(measured(6_600, 5_100), 6_600, "arranged anew in memory of its own");
  assert.equal(measured(6_600, 200), 6_600, "and the file's pages given back");
  assert.equal(measuredBytes({ own: 7, files: 5 }, null).get("Host"), 12);
});
