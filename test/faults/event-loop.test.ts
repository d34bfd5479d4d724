// No document and no body blocks the event loop for more than 50 ms of a developer's machine: while one client sends what it likes, the streams of all
// others go on. Against a gateway in a process of its own. FUZZ_SEED repeats a run, FUZZ_SECONDS makes it longer.
import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { test } from "node:test";
import fc from "fast-check";
import { startCommand } from "../support/command.ts";
import { cacheTalker, makeFolders } from "../support/folders.ts";
import { type FuzzWorld, fuzzPrefixes, fuzzRequest } from "../support/fuzz-requests.ts";
import { createWire, type WireRequest } from "../support/fuzz-wire.ts";
import { type LoopReport, loopMonitor } from "../support/loop-monitor.ts";
import { operations } from "../support/operations.ts";
import { slowness } from "../support/pace.ts";
import { until } from "../support/scratch.ts";

const mostMs = 50;
const seed = Number(process.env["FUZZ_SEED"] ?? 20_260_131);
const seconds = Number(process.env["FUZZ_SECONDS"] ?? 6);
/** Odd requests that are sent however slow the machine is. */
const fewest = 200;
const licenseKey = "loop-key-2b7e151628aed2a6abf7";
const headers = { "content-type": "application/json", authorization: `Bearer ${licenseKey}` };
const [kiB, miB] = [1 << 10, 1 << 20] as const;
const largest = 64 * miB - 100;

function listOf(unit: string, bytes: number): Buffer {
  return Buffer.concat([
    Buffer.from('{"model":"acme/none:Q8_0","x":['),
    Buffer.alloc(bytes - 40, unit),
    Buffer.from("0]}"),
  ]);
}

function chatOf(text: string, model = "acme/none:Q8_0"): string {
  return JSON.stringify({ model, messages: [{ role: "user", content: text }] });
}

function withNote(body: string, note: string): string {
  return `${body.slice(0, -1)},"max_tokens":1,"note":"${note}"}`;
}

function models(count: number): object[] {
  return Array.from({ length: count }, (_, n) => ({ id: `acme/a-model-${n}-GGUF:Q4_K_M`, ctxSize: 4096 }));
}

function unknownKeys(count: number): string {
  return `{${Array.from({ length: count }, (_, n) => `"k${n}":0`).join(",")}}`;
}

const files: readonly (readonly [what: string, text: string])[] = [
  ["100,000 unknown keys", Array.from({ length: 100_000 }, (_, n) => `unknown-key-${n}: 1\n`).join("")],
  ["15,000 unknown keys", Array.from({ length: 15_000 }, (_, n) => `unknown-${n}: 1\n`).join("")],
  ["maps in maps", "{".repeat(250 * kiB)],
  ["quotes", '"'.repeat(250 * kiB)],
  ["commas", `x: [${",".repeat(250 * kiB)}]`],
  ["30,000 models", JSON.stringify({ version: 1, models: models(30_000) })],
  ["500 models", JSON.stringify({ version: 1, models: models(500) })],
];

const documents: readonly (readonly [what: string, method: string, body: string | Buffer])[] = [
  ["380,000 unknown keys", "PATCH", unknownKeys(380_000)],
  ["25,000 unknown keys", "PATCH", unknownKeys(25_000)],
  ["4,900 unknown keys", "PATCH", unknownKeys(4_900)],
  ["30,000 models", "PUT", JSON.stringify({ version: 1, models: models(30_000) })],
  ["500 models", "PUT", JSON.stringify({ version: 1, models: models(500) })],
  ["lists in lists", "PUT", `{"a":${"[".repeat(130_000)}${"]".repeat(130_000)}}`],
  ["empty objects", "PUT", listOf("{},", 250 * kiB)],
  [
    "wrong models",
    "PUT",
    JSON.stringify({ version: 1, models: models(500).map((model) => ({ ...model, x: 1, ctxSize: "" })) }),
  ],
];

const bodies: readonly (readonly [what: string, body: string | Buffer])[] = [
  ...(["[],", '"a",', '{"a":0},'] as const).map((unit) => [`1 MiB of ${unit}`, listOf(unit, miB)] as const),
  ...(["0,", '{"a":0},'] as const).map((unit) => [`64 MiB of ${unit}`, listOf(unit, largest)] as const),
  ["64 MiB of text", chatOf("word ".repeat(largest / 5 - 40))],
  // In a field that the engine ignores: its tokenizer takes 13 s for 64 MiB, and five times that on a busy machine.
  ["64 MiB of text for a model that is there", withNote(chatOf("hi", "alpha"), "word ".repeat(largest / 5 - 40))],
  ["64 MiB of text that is not ASCII", chatOf("é漢".repeat(largest / 5 - 40))],
  ["64 MiB of quotes in a text", chatOf('"'.repeat(largest / 2 - 80))],
  ["64 MiB of white space", `{"model":"acme/none:Q8_0"${" ".repeat(largest - 40)}}`],
  ["64 MiB that are no JSON", `{"model":"${"x".repeat(largest - 40)}`],
  [
    "20,000 texts of 400 bytes",
    JSON.stringify({ model: "acme/none:Q8_0", input: Array(20_000).fill("x".repeat(400)) }),
  ],
  ["7,000 texts of 4 KiB", JSON.stringify({ model: "acme/none:Q8_0", input: Array(7_000).fill("x".repeat(4_100)) })],
];

test("no document and no body blocks the event loop", { timeout: (seconds + 1_500) * 1000 }, async (t) => {
  const folders = await makeFolders(t);
  const id = await cacheTalker(folders, "acme/alpha");
  const document = { version: 1, models: [{ id, preset: { threads: 1 } }] };
  await folders.writeConfig(JSON.stringify(document));
  const monitor = loopMonitor(folders.root);
  const flags = ["--wait-timeout", "4", "--drain-timeout", "3", "--load-timeout", "15", "--start-timeout", "15"];
  const serve = await startCommand(t, folders, ["serve", "--log-level", "error", ...flags], {
    ...monitor.environment,
    GATEWAY_LICENSE_KEY: licenseKey,
  });
  const [, url = ""] = await serve.output(/listens on (\S+);/);
  await serve.output(/Ready\./);
  const wire = createWire(url);
  t.after(() => wire.close());
  const send = (method: string, path: string, body: string | Buffer | null): ReturnType<typeof wire.send> =>
    wire.send({ method, path, headers, body: body === null ? null : Buffer.from(body) }, 600_000);
  const found: (LoopReport & { readonly what: string; readonly allowedMs: number })[] = [];
  /** Whether it was short enough. */
  const measured = async (what: string, work: () => Promise<unknown>): Promise<boolean> => {
    await monitor.report(serve);
    await work();
    const report = await monitor.report(serve);
    // A slow machine takes more for the same: CI's took five times as much.
    const allowedMs = report.turnMs > mostMs ? mostMs * slowness() : mostMs;
    found.push({ what, ...report, allowedMs });
    return report.turnMs <= allowedMs;
  };
  /** The best of three: other processes on the same core add to the processor time (49 ms in place of 25). */
  const measuredThrice = async (what: string, work: () => Promise<unknown>): Promise<void> => {
    for (let tries = 1; !(await measured(what, work)) && tries < 3; tries++) found.pop();
  };

  await measured("a chat", () => send("POST", "/v1/chat/completions", chatOf("hi", id)));
  // The families read bodies by the same functions: each body goes to one of them, in turn.
  const paths = ["/v1/chat/completions", "/api/chat", "/api/embed"] as const;
  for (const [at, [what, body]] of bodies.entries()) {
    const path = what.startsWith("64") ? paths[at % 3] : "/api/embed";
    await measuredThrice(`${path}: ${what}`, () => send("POST", path ?? "", body));
  }
  // One that is refused unread may end with its connection before its answer is read.
  for (const [what, method, body] of documents)
    await measuredThrice(`${method} ${what}`, () => send(method, "/api/desired?dryRun=true", body).catch(() => null));
  const source = async (): Promise<string> =>
    JSON.stringify((JSON.parse((await send("GET", "/status", null)).text) as { source: object }).source);
  for (const [what, text] of files) {
    const before = await source();
    await measured(`file: ${what}`, async () => {
      await writeFile(folders.configPath, text);
      await until(`${what} is seen`, async () => (await source()) !== before);
    });
  }
  // Each of the 500 models is pulled, in vain, and a pass follows each try.
  for (const path of ["/api/desired", "/api/plan", "/api/models/disk", "/v1/models"])
    await measuredThrice(`${path} with 500 models`, () => send("GET", path, null));
  await measured("a change with 500 models", () => send("PATCH", "/api/desired", '{"context":{"default":4096}}'));
  await writeFile(folders.configPath, JSON.stringify(document));
  await until("few models again", async () => (await send("GET", "/api/desired", null)).text.length < 5_000);

  const world: FuzzWorld = {
    licenseKey,
    prefixes: fuzzPrefixes,
    models: [id, "acme/alpha", "acme/none:Q8_0"],
    embedders: [id],
    victims: ["acme/none:Q8_0"],
    repos: ["acme/none"],
  };
  const requests = fc.sample(fuzzRequest(operations, world), { seed, numRuns: seconds * 300 });
  await measured(`${seconds} s of odd requests`, async () => {
    const deadline = performance.now() + seconds * 1000;
    let next = 0;
    const worker = async (): Promise<void> => {
      for (let at = next++; at < requests.length && (at < fewest || performance.now() < deadline); at = next++)
        // What is answered is for test/fuzz to judge.
        await wire.send(requests[at] as WireRequest, 10_000).catch(() => null);
    };
    await Promise.all(Array.from({ length: 6 }, worker));
  });

  const sorted = found.toSorted((a, b) => b.turnMs - a.turnMs);
  for (const { what, turnMs, delayMs } of sorted.slice(0, 12))
    t.diagnostic(`${turnMs.toFixed(0)} ms of processor time (${delayMs.toFixed(0)} ms by the clock): ${what}`);
  assert.deepEqual(
    sorted.filter(({ turnMs, allowedMs }) => turnMs > allowedMs),
    [],
    `FUZZ_SEED=${seed}`,
  );
});
