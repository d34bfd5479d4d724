// Counters of requests: one meter per family, route and model; what is gone leaves no series.
import assert from "node:assert/strict";
import { test } from "node:test";
import { Histogram } from "../../../src/metrics/histogram.ts";
import { createRequestMeters, noModel, statusClasses } from "../../../src/metrics/requests.ts";

test("a histogram counts each observation in the first bucket that holds it", () => {
  const histogram = new Histogram([0.1, 1]);
  for (const seconds of [0, 0.1, 0.2, 1, 1.5, 60]) histogram.observe(seconds);
  assert.deepEqual([...histogram.counts], [2, 2, 2]);
  assert.equal(histogram.sum, 62.8);
});

test("a meter is made once, and counts by the first digit of the status", () => {
  const meters = createRequestMeters();
  const meter = meters.family("openai").of("/chat/completions", "acme/a:Q8_0");
  assert.equal(meters.family("openai").of("/chat/completions", "acme/a:Q8_0"), meter);
  assert.equal(meter.labels, 'family="openai",route="/chat/completions",model="acme/a:Q8_0"');
  for (const status of [200, 200, 404, 429, 503, 0]) meter.ended(status);
  const counts = Object.fromEntries(statusClasses.map((name, at) => [name, meter.counts[at]]));
  assert.deepEqual(counts, { cancelled: 1, "1xx": 0, "2xx": 2, "3xx": 0, "4xx": 2, "5xx": 1 });
  const durations = (): number | undefined => meter.duration?.sum;
  assert.equal(durations(), undefined);
  meter.wasAnswered(1_500);
  assert.equal(durations(), 1.5);
});

test("routes and families share the meter of a model", () => {
  const meters = createRequestMeters();
  meters.family("openai").of("/chat/completions", "m").model.addTokens(3, 4);
  meters.family("ollama").of("/chat", "m").model.addTokens(1, 1);
  meters.family("gateway").of("/status", "").ended(200);
  meters.family("openai").of("/chat/completions", noModel).ended(404);
  assert.deepEqual(
    meters.models().map(({ id, promptTokens, completionTokens }) => [id, promptTokens, completionTokens]),
    [["m", 4, 5]],
  );
  assert.equal(meters.requests().length, 4);
});

test("series of models that are gone end; those of no model stay", () => {
  const meters = createRequestMeters();
  for (const model of ["kept", "gone", noModel, ""]) meters.family("openai").of("/chat/completions", model).ended(200);
  meters.keep(new Set(["kept"]));
  assert.deepEqual(
    meters.requests().map(({ model }) => model.id),
    ["kept", noModel, ""],
  );
  assert.deepEqual(
    meters.models().map(({ id }) => id),
    ["kept"],
  );
});
