// The text of a scrape: as prom-client writes the same samples, without an empty family, and cheap with many models.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Registry } from "prom-client";
import { type Family, type FamilyName, families, prefix } from "../../../src/metrics/families.ts";
import { createRequestMeters } from "../../../src/metrics/requests.ts";
import { type MeteredParts, scrapedFrom } from "../../../src/metrics/samples.ts";
import { labelText, metricsText, type Samples } from "../../../src/metrics/text.ts";
import { createWorkMeters } from "../../../src/metrics/work.ts";
import type { StatusReport } from "../../../src/status/report.ts";

/** What prom-client makes of them: it takes labels apart and writes them again. */
function byPromClient(samples: Samples): Promise<string> {
  const registry = new Registry();
  for (const [key, found] of Object.entries(samples)) {
    if (found.length === 0) continue;
    const name = prefix + key;
    const { type, help }: Family = families[key as FamilyName];
    const values = found.map(({ value, labels, suffix = "" }) => ({
      value,
      metricName: name + suffix,
      labels: Object.fromEntries(
        [...labels.matchAll(/(\w+)=("(?:[^"\\]|\\.)*")/g)].map(([, label, text]) => [label, JSON.parse(text ?? "")]),
      ),
    }));
    registry.registerMetric({ name, get: async () => ({ name, help, type, values }) } as never);
  }
  return registry.metrics();
}

const lines = (text: string): readonly string[] => text.split("\n").filter((line) => line !== "");

function reportOf(ids: readonly string[], parts: Partial<StatusReport> = {}): StatusReport {
  const conditionsOf = (...types: readonly string[]) => types.map((type) => ({ type, status: "True" }));
  return {
    gateway: { version: "1.2.3", ready: true },
    router: { connected: true },
    conditions: conditionsOf("Ready", "Healthy", "SourceValid", "Synced", "RouterReady", "DiskRoom", "HubReachable"),
    documentHash: "ab",
    generation: 3,
    observedGeneration: 3,
    models: ids.map((id) => ({ id, desired: true, conditions: conditionsOf("Ready", "Present", "Applied", "Loaded") })),
    inFlight: {},
    waiting: [],
    speech: { transcription: null, synthesis: null },
    ...parts,
  } as unknown as StatusReport;
}

const samplesOf = (report: StatusReport, parts: MeteredParts): Samples => scrapedFrom(report, parts).samples;

/** Each model was loaded and asked by two families. */
function asked(ids: readonly string[]): MeteredParts {
  const [requests, work] = [createRequestMeters(), createWorkMeters()];
  work.listed(new Map(ids.map((id, at) => [id, `http://127.0.0.1:${at}`])));
  for (const id of ids) {
    for (const [family, route] of [["openai", "/chat/completions"]] as const) {
      const meter = requests.family(family).of(route, id);
      meter.ended(200);
      meter.firstTokenCame(120);
      meter.wasAnswered(1_200);
      meter.model.queueWait.observe(0.01);
      meter.model.addTokens(30, 4);
    }
  }
  const models = ids.map((id) => ({ id, slots: 4, isPinned: false }));
  return { requests, work, loaded: () => ({ models, modelSlots: 4 }) };
}

test("every sample is as prom-client writes it, whatever a model is called", async () => {
  await fc.assert(
    fc.asyncProperty(fc.uniqueArray(fc.string({ minLength: 1, unit: "grapheme" }), { maxLength: 4 }), async (ids) => {
      const [first = "none"] = ids;
      const report = reportOf(ids, {
        inFlight: { [first]: 2 },
        waiting: [{ model: first, requests: 3, oldestMs: 1_500, for: "room" }],
      });
      const samples = samplesOf(report, asked(ids));
      assert.deepEqual(lines(metricsText(samples)), lines(await byPromClient(samples)));
    }),
    { seed: 5, numRuns: 60 },
  );
});

test("no family is served without a sample, and every sample has its family's labels", () => {
  const samples = samplesOf(reportOf(["acme/a:Q8_0"]), asked(["acme/a:Q8_0"]));
  const text = metricsText(samples);
  for (const [key, { labels }] of Object.entries(families)) {
    const found = samples[key as FamilyName];
    assert.equal(text.includes(`# TYPE ${prefix}${key} `), found.length > 0, key);
    for (const sample of found) {
      const names = [...sample.labels.matchAll(/(\w+)="/g)].map(([, name]) => name).filter((name) => name !== "le");
      assert.deepEqual(names, labels, key);
    }
  }
  assert.equal(metricsText(samplesOf(reportOf([]), asked([]))).includes("model_ready"), false);
});

test("a value's quotes, backslashes and line feeds are escaped", () => {
  assert.equal(labelText({ model: 'a"b\\c\nd' }), 'model="a\\"b\\\\c\\nd"');
});

test("200 models that were all asked cost less than 5 ms of processor time", (t) => {
  const ids = Array.from({ length: 200 }, (_, at) => `acme/model-${at}:Q8_0`);
  const [report, parts] = [reportOf(ids), asked(ids)];
  const costs = Array.from({ length: 40 }, () => {
    const before = process.cpuUsage();
    assert.ok(metricsText(samplesOf(report, parts)).length > 100_000);
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1000;
  });
  t.diagnostic(`least ${Math.min(...costs).toFixed(2)} ms`);
  // The first ones are not compiled yet; other processes on the same cores only add.
  assert.ok(Math.min(...costs) < 5, costs.join(", "));
});
