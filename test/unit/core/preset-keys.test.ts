// Which preset keys and values a document may not set.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { presetProblem } from "../../../src/core/preset-keys.ts";
import { readEntry } from "../../../src/plan/preset-file.ts";

const refused: readonly (readonly [key: string, why: RegExp])[] = [
  ["c", /use ctxSize/],
  ["ctx-size", /use ctxSize/],
  ["rpc", /rpc\.workers/],
  ...["m", "model", "hf", "hfr", "hf-repo", "hf-file", "mmproj", "model-url", "hf-token"].map(
    (key) => [key, /names its files/] as const,
  ),
  ...["host", "port", "alias", "api-key", "ssl-key-file", "api-prefix"].map((key) => [key, /router owns/] as const),
  ...["models-dir", "models-max", "offline", "stop-timeout", "load-on-startup"].map(
    (key) => [key, /gateway owns/] as const,
  ),
  ...["help", "version", "list-devices"].map((key) => [key, /print something and end/] as const),
];

for (const [key, why] of refused) test(`refused: ${key}`, () => assert.match(presetProblem(key, "x") ?? "", why));

const values: readonly (readonly [value: string | number | boolean, allowed: boolean])[] = [
  ["on", true],
  [2, true],
  [0.5, true],
  [false, true],
  ["a b=c", true],
  ["a#b", false],
  ["a;b", false],
  ["a\nb", false],
  ["a\u0000b", false],
  ["", false],
  [" a", false],
  ["a ", false],
];

for (const [value, allowed] of values) {
  test(`value ${JSON.stringify(value)} is ${allowed ? "taken" : "refused"}`, () =>
    assert.equal(presetProblem("flash-attn", value) === null, allowed));
}

test("what is taken arrives whole at a reader of the file", () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-zA-Z0-9 ./,:#;_-]{0,20}$/), (value) => {
      if (presetProblem("chat-template", value) === null)
        assert.equal(readEntry(`chat-template = ${value}`)?.value, value);
    }),
    { seed: 3, numRuns: 500 },
  );
});

test("a refusal names no value, which may be a secret", () => {
  assert.doesNotMatch(presetProblem("api-key", "hunter2") ?? "", /hunter2/);
  assert.doesNotMatch(presetProblem("threads", "hunter2#") ?? "", /hunter2/);
});
