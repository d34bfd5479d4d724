// What is done all the time: the scan of a chat's body for its model, beside the parse that this saves, and of the model cache; the plan
// of a document that names all of the cache; and a scrape of the metrics.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCacheScanner } from "../../src/cache/scan/scan.ts";
import { scanBody } from "../../src/http/json/body-scan.ts";
import { scrapedFrom } from "../../src/metrics/samples.ts";
import { metricsText } from "../../src/metrics/text.ts";
import { plan } from "../../src/plan/plan.ts";
import { asked, reportOf } from "../support/metered.ts";
import { desiredFrom, silenceLimitMs, world } from "../unit/plan/world.ts";
import { fillCache } from "./full-cache.ts";
import { judge, quantile } from "./goals.ts";

const rounds = 32;

async function timed(what: string, work: () => unknown, goalMs?: number): Promise<void> {
  const [times, cpuTimes]: [number[], number[]] = [[], []];
  // The first one reads more, and its code is not compiled yet.
  for (let round = 0; round <= rounds; round++) {
    const [began, cpu] = [performance.now(), process.cpuUsage()];
    await work();
    times.push(performance.now() - began);
    const { user, system } = process.cpuUsage(cpu);
    cpuTimes.push((user + system) / 1000);
  }
  const [first = 0, ...later] = times;
  const middle = quantile(later, 0.5);
  const range = `${Math.min(...later).toFixed(1)}–${Math.max(...later).toFixed(1)}, ${rounds} times`;
  const cpuTime = `${quantile(cpuTimes.slice(1), 0.5).toFixed(1)} ms of processor time`;
  const verdict = goalMs === undefined ? "" : `; ${judge("scan", `${what}, ms`, middle, { most: goalMs }, { later })}`;
  console.log(`${what}: first ${first.toFixed(1)} ms, then ${middle.toFixed(1)} ms (${range}), ${cpuTime}${verdict}`);
}

const cacheDir = await mkdtemp(join(tmpdir(), "gateway-bench-"));
try {
  const ids = await fillCache(cacheDir);
  const { scan } = createCacheScanner(cacheDir);
  await timed("a cache of 1,000 models in 5,000 files", scan, 100);
  const cache = await scan();
  const context = { now: Date.now(), backoff: new Map(), silenceLimitMs, underWay: [] };
  const planOf = (models: readonly unknown[]): (() => unknown) => {
    const desired = { ...desiredFrom({ models }), removals: [], spared: [] };
    const observed = { ...world(desired, {}), cache };
    return () => plan(desired, observed, context);
  };
  const named = ids.slice(0, 500);
  await timed("the plan of 500 of them, as many as a document has", planOf(named), 10);
  await timed("the same, each with a context size", planOf(named.map((id) => ({ id, ctxSize: 4096 }))));
} finally {
  await rm(cacheDir, { recursive: true, force: true });
}

// After the scans: each would wait for the collection of 20 MB that was parsed.
const url = `data:image/png;base64,${"iVBORw0K".repeat(2.5e6)}`;
const content = [{ type: "image_url", image_url: { url } }];
const body = Buffer.from(JSON.stringify({ messages: [{ role: "user", content }], model: "m" }));
await timed("a body with 20 MB of image, scanned", () => scanBody(body, ["model", "stream"]));
await timed("the same, parsed", () => JSON.parse(body.toString()) as unknown);

const models = Array.from({ length: 200 }, (_, at) => `acme/model-${at}:Q8_0`);
const [report, parts] = [reportOf(models), asked(models)];
await timed("a scrape of 200 models that were all asked", () => metricsText(scrapedFrom(report, parts).samples), 5);
