// The places in the message about a wrong document.
import assert from "node:assert/strict";
import { test } from "node:test";
import { problemsIn } from "../../../src/core/problem-places.ts";

test("each problem has its line; a message without a place has none", () => {
  assert.deepEqual(
    problemsIn("line 3, column 12: context.default: must be integer; line 4, column 9: models: must be array"),
    [
      { line: 3, column: 12, message: "context.default: must be integer" },
      { line: 4, column: 9, message: "models: must be array" },
    ],
  );
  assert.deepEqual(problemsIn("line 1, column 1: a; b; and 4 more"), [
    { line: 1, column: 1, message: "a; b; and 4 more" },
  ]);
  assert.deepEqual(problemsIn("models.a.source can only be set in gateway.yaml"), []);
});
