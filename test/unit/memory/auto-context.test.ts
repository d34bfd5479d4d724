// What a model may take whose context is left to the gateway, and when a choice holds.
import assert from "node:assert/strict";
import { test } from "node:test";
import { areSameLimits, shareOf } from "../../../src/memory/auto-context.ts";

const on = (host: number, gpu = 0): ReadonlyMap<string, number> =>
  new Map([
    ["host", host],
    ["CUDA0", gpu],
  ]);
const limits = new Map([
  ["Host", 1600],
  ["CUDA0", 3200],
]);

test("it gets what the pinned models leave, without a sixteenth of that", () => {
  assert.deepEqual(
    [...shareOf(limits, { own: on(100), fixed: [], choosing: [] })],
    [
      ["Host", 1500],
      ["CUDA0", 3000],
    ],
  );
  const fixed = [on(300, 1000), on(200)];
  assert.deepEqual(
    [...shareOf(limits, { own: on(100, 5), fixed, choosing: [] })],
    [
      ["Host", 1031],
      ["CUDA0", 2062],
    ],
  );
});

test("pinned models that choose too share what is left beside the smallest contexts of all", () => {
  const [small, large] = [on(100), on(600)];
  const first = shareOf(limits, { own: small, fixed: [], choosing: [large] });
  const second = shareOf(limits, { own: large, fixed: [], choosing: [small] });
  assert.deepEqual([first.get("Host"), second.get("Host")], [500, 1000]);
});

test("where the others leave too little nothing is left, and never less", () => {
  assert.equal(shareOf(limits, { own: on(100), fixed: [on(5000)], choosing: [] }).get("Host"), 0);
});

test("a choice holds until a limit has moved by an eighth, or a device came or went", () => {
  const before = { Host: 1600, CUDA0: 3200 };
  assert.equal(areSameLimits(before, limits), true);
  assert.equal(
    areSameLimits(
      before,
      new Map([
        ["Host", 1500],
        ["CUDA0", 3000],
      ]),
    ),
    true,
  );
  assert.equal(
    areSameLimits(
      before,
      new Map([
        ["Host", 1300],
        ["CUDA0", 3200],
      ]),
    ),
    false,
  );
  assert.equal(areSameLimits(before, new Map([["Host", 1600]])), false);
  assert.equal(areSameLimits({ Host: 1600 }, limits), false);
});
