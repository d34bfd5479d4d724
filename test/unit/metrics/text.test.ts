// The text of a scrape: as prom-client writes the same samples, and without an empty family. What it costs: `npm run bench -- scan`.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { Registry } from "prom-client";
import { type Family, type FamilyName, families, prefix } from "../../../src/metrics/families.ts";
import { type MeteredParts, scrapedFrom } from "../../../src/metrics/samples.ts";
import { labelText, metricsText, type Samples } from "../../../src/metrics/text.ts";
import type { StatusReport } from "../../../src/status/report.ts";
import { asked, reportOf } from "../../support/metered.ts";

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

const samplesOf = (report: StatusReport, parts: MeteredParts): Samples => scrapedFrom(report, parts).samples;

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
