// What is told of requests: models whose load fails.
import assert from "node:assert/strict";
import { test } from "node:test";
import { modelFindings } from "../../../src/status/model-findings.ts";
import { conditionOf, model, pulled, statusInput } from "./situations.ts";

const id = "acme/a:Q8_0";

test("Loaded: a load that failed is said with the engine's words and when it is tried again", () => {
  const failing = new Map([[id, { failures: 3, until: Date.parse("2026-01-31T12:00:00Z"), message: "bad magic." }]]);
  const requests = { failing, firstTokens: new Map() };
  const found = modelFindings(id, statusInput({ document: model, machine: pulled, requests }));
  assert.equal(conditionOf("Loaded", found), "False LoadFailing");
  assert.match(
    found.find(({ type }) => type === "Loaded")?.message ?? "",
    /^Each of its last 3 loads failed: bad magic\. The next try is not before 2026-01-31T12:00:00\.000Z\. Correct/,
  );
});
