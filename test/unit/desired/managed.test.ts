// The line of a field in a gateway.yaml.
import assert from "node:assert/strict";
import { test } from "node:test";
import { lineOf } from "../../../src/desired/managed.ts";

const a = "acme/a:Q8_0";
const text = `# first
version: 1
context:
  default: 512
models:
  - ${a}
  - id: acme/b:Q8_0
    preset: { temp: 1,
      seed: 2 }
`;

test("the line of a field, or of what is around it", () => {
  for (const [path, line, isWhole] of [
    [["version"], 2, true],
    [["context", "default"], 4, true],
    [["context", "other"], 3, false],
    [["models"], 5, true],
    [["models", a], 6, true],
    [["models", a, "ctxSize"], 6, false],
    [["models", "acme/b:Q8_0"], 7, true],
    [["models", "acme/b:Q8_0", "preset", "seed"], 9, true],
    [["models", "acme/c:Q8_0", "ctxSize"], 5, false],
  ] as const)
    assert.deepEqual(lineOf(text, path), { line, isWhole }, path.join());
});

test("none where the file does not have it, or is no document", () => {
  assert.equal(lineOf(text, ["prune"]), null);
  for (const broken of ["", "version: [", "5", "- a\n"]) assert.equal(lineOf(broken, ["prune"]), null);
});
