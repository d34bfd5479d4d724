// What is told of requests: models whose load fails, answers that were cut, and the gauges of those who wait.
import assert from "node:assert/strict";
import { test } from "node:test";
import { metricsText } from "../../../src/status/metrics.ts";
import { modelFindings } from "../../../src/status/model-findings.ts";
import type { StatusReport } from "../../../src/status/report.ts";
import { conditionOf, model, pulled, type Situation, statusInput } from "./situations.ts";

const id = "acme/a:Q8_0";
const none = { failing: new Map(), cuts: new Map(), drainMs: 30_000 };

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

test("gauges: each model in flight and each wait, in Prometheus's text", () => {
  const report = {
    gateway: { ready: true },
    router: { connected: false },
    inFlight: { 'a/"b":c': 2 },
    waiting: [{ model: id, requests: 3, oldestMs: 1_500, for: "room" }],
    speech: { transcription: { inFlight: 4 }, synthesis: null },
  } as unknown as StatusReport;
  const lines = metricsText(report).split("\n");
  for (const line of [
    "model_gateway_ready 1",
    "model_gateway_router_connected 0",
    "# TYPE model_gateway_requests_in_flight gauge",
    'model_gateway_requests_in_flight{model="a/\\"b\\":c"} 2',
    `model_gateway_requests_waiting{model="${id}",for="room"} 3`,
    `model_gateway_oldest_wait_seconds{model="${id}",for="room"} 1.5`,
    'model_gateway_speech_requests{engine="transcription"} 4',
  ])
    assert.ok(lines.includes(line), `${line} in\n${lines.join("\n")}`);
});
