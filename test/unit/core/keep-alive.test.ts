// How long an idle model stays loaded, in every form that Ollama's clients write.

import assert from "node:assert/strict";
import { test } from "node:test";
import { parseKeepAlive } from "../../../src/core/keep-alive.ts";

test("seconds, Go durations, for ever, and what is neither", () => {
  const table: readonly (readonly [unknown, number | "forever" | "default" | null])[] = [
    [undefined, "default"],
    [null, "default"],
    [300, 300],
    [1.5, 1.5],
    [0, 0],
    ["0", 0],
    ["0s", 0],
    ["5m", 300],
    ["+5m", 300],
    ["1h30m", 5400],
    ["300ms", 0.3],
    ["1.5h", 5400],
    [".5s", 0.5],
    ["1m0.25s", 60.25],
    ["2us", 2e-6],
    ["2µs", 2e-6],
    ["2ns", 2e-9],
    ["-1m", "forever"],
    ["-1ns", "forever"],
    [-1, "forever"],
    [-0.5, "forever"],
    ["", null],
    ["5", null],
    ["-1", null],
    ["5 m", null],
    ["5d", null],
    ["m", null],
    [".s", null],
    ["1h-30m", null],
    ["forever", null],
    [true, null],
    [{}, null],
    [Number.POSITIVE_INFINITY, null],
  ];
  for (const [value, wanted] of table) {
    const expected = typeof wanted === "number" ? { kind: "seconds", seconds: wanted } : wanted && { kind: wanted };
    assert.deepEqual(parseKeepAlive(value), expected, JSON.stringify(value));
  }
});
