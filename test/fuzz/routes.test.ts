// Thousands of requests of every kind to every operation of the table, against a real gateway on the real engine: no
// answer that is not described, none that is late, and nothing left behind. FUZZ_SEED repeats a run, FUZZ_SECONDS makes it longer.
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import fc from "fast-check";
import { cacheModel, cacheTalker, makeFolders } from "../support/folders.ts";
import { judge } from "../support/fuzz-judge.ts";
import { type FuzzRequest, type FuzzWorld, fuzzPrefixes, fuzzRequest } from "../support/fuzz-requests.ts";
import { createWire, type Wire } from "../support/fuzz-wire.ts";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { startLoopbackHub } from "../support/loopback-hub.ts";
import { answersOf, embeddingModel, modelBytes, talkingModel } from "../support/models.ts";
import { operations } from "../support/operations.ts";
import { childrenOf } from "../support/processes.ts";
import { until } from "../support/scratch.ts";

const seed = Number(process.env["FUZZ_SEED"] ?? 20_260_131);
const seconds = Number(process.env["FUZZ_SECONDS"] ?? 4);
const atOnce = 6;
const answerMs = 60_000;
/** However slow the machine is. */
const fewest = 200;
const licenseKey = "fuzz-key-2b7e151628aed2a6abf7";
interface World extends FuzzWorld {
  readonly gateway: TestGateway;
  readonly wire: Wire;
  /** Everything as it was at the start. */
  restore(): Promise<void>;
}

async function startWorld(t: TestContext): Promise<World> {
  const hub = await startLoopbackHub(t);
  hub.addRepo("acme/new-GGUF", { files: { "new-Q8_0.gguf": modelBytes(talkingModel("new")) }, downloads: 1, likes: 1 });
  const folders = await makeFolders(t);
  const stays = await Promise.all([
    cacheTalker(folders, "acme/alpha"),
    cacheTalker(folders, "acme/beta"),
    cacheModel(folders, "acme/embedder", "model-Q8_0.gguf", modelBytes(embeddingModel("embedder"))).then(
      () => "acme/embedder:Q8_0",
    ),
  ]);
  // One thread each: two spin while they wait for each other.
  const document = { version: 1, models: stays.map((id) => ({ id, preset: { threads: 1, "threads-batch": 1 } })) };
  const gateway = await startTestGateway(t, {
    folders,
    yaml: JSON.stringify(document),
    environment: { HF_ENDPOINT: hub.endpoint, GATEWAY_LICENSE_KEY: licenseKey },
    // Whatever cannot come is waited for no longer than an answer may take.
    flags: ["--wait-timeout", "4", "--drain-timeout", "3", "--load-timeout", "15", "--start-timeout", "15"],
  });
  const wire = createWire(gateway.url);
  const headers = { "content-type": "application/json", authorization: `Bearer ${licenseKey}` };
  return {
    gateway,
    wire,
    licenseKey,
    prefixes: fuzzPrefixes,
    models: [...stays, "acme/alpha", "acme/new-GGUF:Q8_0", "acme/none:Q8_0", "nothing"],
    embedders: ["acme/embedder:Q8_0", "acme/alpha:Q8_0"],
    victims: ["acme/new-GGUF:Q8_0", "acme/new-GGUF", "acme/none:Q8_0"],
    repos: ["acme/new-GGUF", "acme/none"],
    restore: async () => {
      const body = Buffer.from(JSON.stringify(document));
      const answer = await wire.send({ method: "PUT", path: "/api/desired", headers, body }, answerMs);
      assert.equal(answer.status, 200, answer.text);
      await gateway.converged();
    },
  };
}

interface Found {
  readonly request: FuzzRequest;
  readonly problem: string;
  readonly status: number;
  readonly text: string;
}

interface Outcome {
  readonly sent: number;
  readonly found: readonly Found[];
  readonly slowest: number;
  readonly statuses: ReadonlyMap<number, number>;
  readonly untouched: readonly string[];
}

async function run(world: World, requests: readonly FuzzRequest[], deadline: number): Promise<Outcome> {
  const found: Found[] = [];
  const statuses = new Map<number, number>();
  const answered = new Set<string>();
  let next = 0;
  let slowest = 0;
  const worker = async (): Promise<void> => {
    while (performance.now() < deadline) {
      const request = requests[next++];
      if (!request) return;
      try {
        const answer = await world.wire.send(request, answerMs);
        slowest = Math.max(slowest, answer.ms);
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
        if (answer.status < 300) answered.add(request.operation.id);
        const problem = judge(request, answer);
        if (problem !== null) found.push({ request, problem, status: answer.status, text: answer.text.slice(0, 300) });
      } catch (error) {
        const { running, planned, inFlight, router } = world.gateway.gateway.status();
        found.push({
          request,
          problem: String(error),
          status: 0,
          text: JSON.stringify({ running, planned, inFlight, router }),
        });
      }
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  const untouched = operations
    .filter(({ id, responses }) => responses.length > 0 && !answered.has(id))
    .map(({ id }) => id);
  return { sent: Math.min(next, requests.length), found, slowest, statuses, untouched };
}

/** Bytes in use after a collection. */
function heapInUse(): number {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  collect();
  return process.memoryUsage().heapUsed;
}

function openFiles(): number {
  return process.platform === "linux" ? readdirSync("/proc/self/fd").length : 0;
}

/** One line per kind of finding, with the shortest request that shows it. */
function report(found: readonly Found[]): string {
  const kinds = new Map<string, Found[]>();
  for (const each of found) {
    const kind = `${each.request.operation.id}: ${each.problem}`;
    kinds.set(kind, [...(kinds.get(kind) ?? []), each]);
  }
  return [...kinds]
    .map(([kind, list]) => {
      const [shortest] = list.toSorted((a, b) => sizeOf(a) - sizeOf(b));
      const request = shortest?.request;
      const line = `${request?.method} ${request?.path} ${request?.body?.toString("utf8").slice(0, 300) ?? ""}`;
      return `${list.length} x ${kind}\n    ${line}\n    ${JSON.stringify(request?.headers)}\n    → ${shortest?.status} ${shortest?.text}`;
    })
    .join("\n");
}

function sizeOf({ request }: Found): number {
  return request.path.length + (request.body?.length ?? 0);
}

test(`every operation under ${seconds} s of odd requests`, { timeout: (seconds + 1_500) * 1000 }, async (t) => {
  const world = await startWorld(t);
  const { gateway, wire } = world;
  await gateway.converged();
  // Longer than any run: what is not reached in time is not sent.
  const requests = fc.sample(fuzzRequest(operations, world), { seed, numRuns: seconds * 500 });
  const first = await run(world, requests.slice(0, 150), Number.POSITIVE_INFINITY);
  await world.restore();
  const before = { heap: heapInUse(), files: openFiles(), children: (await childrenOf(process.pid)).length };

  const deadline = performance.now() + seconds * 1000;
  const found = [...first.found];
  const untouched = new Set(first.untouched);
  let sent = first.sent;
  let slowest = first.slowest;
  for (let at = first.sent; at < requests.length && (sent < fewest || performance.now() < deadline); ) {
    // The document, left to chance, soon says `suspend: true`: then there is little to find.
    const part = await run(world, requests.slice(at, at + 200), sent < fewest ? Number.POSITIVE_INFINITY : deadline);
    at += Math.max(1, part.sent);
    sent += part.sent;
    slowest = Math.max(slowest, part.slowest);
    found.push(...part.found);
    for (const id of untouched) if (!part.untouched.includes(id)) untouched.delete(id);
    await world.restore();
  }
  t.diagnostic(
    `seed ${seed}: ${sent} requests, slowest ${Math.round(slowest)} ms; no success of ${[...untouched].join(" ") || "none"}`,
  );

  for (const name of ["acme/alpha", "acme/beta"]) assert.equal(await ask(world, `${name}:Q8_0`), answersOf(name).hello);
  wire.close();
  await t.test("and nothing is left of it", async () => {
    // A tool of the engine that estimates memory may be at work still: it ends by itself.
    await until("no more children than before", async () => (await childrenOf(process.pid)).length <= before.children);
    const after = { heap: heapInUse(), files: openFiles() };
    const told = JSON.stringify({ before, after });
    assert.ok(after.heap - before.heap < 40 * 1024 * 1024, told);
    assert.ok(after.files - before.files < 20, told);
    assert.deepEqual(gateway.gateway.status().inFlight, {});
    t.diagnostic(told);
  });
  assert.equal(found.length, 0, `FUZZ_SEED=${seed}\n${report(found)}`);
});

async function ask({ wire, licenseKey: key }: World, model: string): Promise<string> {
  const answer = await wire.send(
    {
      method: "POST",
      path: "/v1/chat/completions",
      headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
      body: Buffer.from(JSON.stringify({ model, messages: [{ role: "user", content: "hi" }] })),
    },
    answerMs,
  );
  assert.equal(answer.status, 200, answer.text);
  const { choices } = JSON.parse(answer.text) as { readonly choices: readonly { message: { content: string } }[] };
  return choices[0]?.message.content ?? "";
}
