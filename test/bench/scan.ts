// What is scanned all the time: the body of a chat for its model, beside the parse that this saves, and the model cache; and the plan
// of a document that names all of the cache.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCacheScanner } from "../../src/cache/scan/scan.ts";
import { scanBody } from "../../src/http/json/body-scan.ts";
import { plan } from "../../src/plan/plan.ts";
import { desiredFrom, silenceLimitMs, world } from "../unit/plan/world.ts";
import { fillCache } from "./full-cache.ts";
import { judge } from "./goals.ts";

async function timed(what: string, work: () => unknown, goalMs?: number): Promise<void> {
  const times: number[] = [];
  for (let round = 0; round < 9; round++) {
    const began = performance.now();
    await work();
    times.push(performance.now() - began);
  }
  const [first = 0, ...later] = times;
  const [least = 0, , , middle = 0, , , , most = 0] = later.toSorted((a, b) => a - b);
  const range = `${least.toFixed(1)}–${most.toFixed(1)}`;
  console.log(
    `${what}: first ${first.toFixed(1)} ms, then ${middle.toFixed(1)} ms (${range}, 8 times)${goalMs === undefined ? "" : `; ${judge("scan", `${what}, ms`, middle, { most: goalMs }, { later })}`}`,
  );
}

const url = `data:image/png;base64,${"iVBORw0K".repeat(2.5e6)}`;
const content = [{ type: "image_url", image_url: { url } }];
const body = Buffer.from(JSON.stringify({ messages: [{ role: "user", content }], model: "m" }));
await timed("a body with 20 MB of image, scanned", () => scanBody(body, ["model", "stream"]));
await timed("the same, parsed", () => JSON.parse(body.toString()) as unknown);

const cacheDir = await mkdtemp(join(tmpdir(), "gateway-bench-"));
try {
  const ids = await fillCache(cacheDir);
  const { scan } = createCacheScanner(cacheDir);
  await timed("a cache of 1,000 models in 5,000 files", scan, 100);
  const desired = { ...desiredFrom({ models: ids.slice(0, 500) }), removals: [], spared: [] };
  const observed = { ...world(desired, {}), cache: await scan() };
  const context = { now: Date.now(), backoff: new Map(), silenceLimitMs, underWay: [] };
  await timed("the plan of 500 of them, as many as a document has", () => plan(desired, observed, context), 10);
} finally {
  await rm(cacheDir, { recursive: true, force: true });
}
