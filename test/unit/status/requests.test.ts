// What is told of requests: models whose load fails, and answers that were cut.
import assert from "node:assert/strict";
import { test } from "node:test";
import { modelFindings } from "../../../src/status/model-findings.ts";
import { conditionOf, model, pulled, type Situation, statusInput } from "./situations.ts";

const id = "acme/a:Q8_0";
const none = { failing: new Map(), firstTokens: new Map(), cuts: new Map(), drainMs: 30_000 };

function findings(requests: Situation["requests"] = none): ReturnType<typeof modelFindings> {
  return modelFindings(id, statusInput({ document: model, machine: pulled, requests }));
}

test("Loaded: a load that failed is said with the engine's words and when it is tried again", () => {
  const failing = new Map([[id, { failures: 3, until: Date.parse("2026-01-31T12:00:00Z"), message: "bad magic." }]]);
  const found = findings({ ...none, failing });
  assert.equal(conditionOf("Loaded", found), "False LoadFailing");
  assert.match(
    found.find(({ type }) => type === "Loaded")?.message ?? "",
    /^Each of its last 3 loads failed: bad magic\. The next try is not before 2026-01-31T12:00:00\.000Z\. Correct/,
  );
});

test("Drained: only of models that were; a drain that cut nothing takes it back", () => {
  assert.equal(conditionOf("Drained", findings()), "undefined undefined");
  const cut = { count: 2, at: Date.parse("2026-01-31T12:00:00Z") };
  const found = findings({ ...none, cuts: new Map([[id, cut]]) });
  assert.equal(conditionOf("Drained", found), "False DrainTimedOut");
  assert.match(found.at(-1)?.message ?? "", /cut 2 answer\(s\) that took longer than the 30 s of --drain-timeout/);
  const whole = findings({ ...none, cuts: new Map([[id, { ...cut, count: 0 }]]) });
  assert.equal(conditionOf("Drained", whole), "True Drained");
});
