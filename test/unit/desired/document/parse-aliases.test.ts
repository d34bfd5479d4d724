// YAML aliases in gateway.yaml: bombs, loops, and what they are good for.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseSource } from "../../../../src/desired/document/parse.ts";

test("a bomb of aliases is refused, and quickly", () => {
  const levels = Array.from(
    { length: 9 },
    (_, level) => `x${level + 1}: &x${level + 1} [${Array(9).fill(`*x${level}`).join(",")}]`,
  );
  const parsed = parseSource(["version: 1", "x0: &x0 [a]", ...levels].join("\n"));
  assert.ok(!parsed.ok);
  assert.match(parsed.problems[0]?.message ?? "", /alias/i);
});

test("an alias without an anchor before it is named", () => {
  const parsed = parseSource("version: 1\nmodels:\n  - &a acme/a:Q8_0\n  - *a\n  - *nope\n  - &nope acme/b:Q8_0\n");
  assert.ok(!parsed.ok);
  assert.match(parsed.problems[0]?.message ?? "", /^Unresolved alias .*: nope$/);
});

test("an alias that holds itself is refused", () => assert.ok(!parseSource("version: 1\nmodels: &x [*x]\n").ok));

test("aliases may be used for what they are good for", () => {
  const parsed = parseSource(
    "version: 1\nmodels:\n  - id: a/b:c\n    preset: &p { threads: 2 }\n  - id: a/b:d\n    preset: *p\n",
  );
  assert.ok(parsed.ok);
});
