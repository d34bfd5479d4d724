// What the gateway costs: the same requests straight to the model's process and through the gateway, taken in turns in
// one run, reported as ratios. On a real engine with a computed model; bounded in count and time.
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pino from "pino";
import { Agent, type Dispatcher } from "undici";
import { startGateway } from "../../src/app/gateway.ts";
import { findLeftovers } from "../../src/engines/process/leftovers.ts";
import { readSettings } from "../../src/settings/settings.ts";
import { installedServer } from "../support/engine.ts";
import { cacheTalker } from "../support/folders.ts";
import { quantile } from "./goals.ts";

interface Target {
  readonly name: string;
  readonly origin: string;
  readonly path: string;
  readonly headers: Record<string, string>;
}

/** Of a figure of the samples. */
function median(figure: "total" | "firstByte"): (samples: readonly Sample[]) => number {
  return (samples) =>
    quantile(
      samples.map((sample) => sample[figure]),
      0.5,
    );
}

interface Sample {
  /** ms */
  readonly total: number;
  readonly firstByte: number;
  readonly bytes: number;
}

const repetitions = 3;
const agent = new Agent({ pipelining: 1, headersTimeout: 0, bodyTimeout: 0 });

async function once(target: Target, body: object, stream: boolean): Promise<Sample> {
  const began = performance.now();
  const answer: Dispatcher.ResponseData = await agent.request({
    origin: target.origin,
    path: target.path,
    method: "POST",
    headers: { "content-type": "application/json", ...target.headers },
    body: JSON.stringify(body),
    // The engine closes its connections after streams; so that both targets pay the same, no stream's is kept.
    reset: stream,
  });
  let firstByte = 0;
  let bytes = 0;
  for await (const chunk of answer.body as AsyncIterable<Buffer>) {
    if (firstByte === 0) firstByte = performance.now() - began;
    bytes += chunk.length;
  }
  if (answer.statusCode !== 200) throw new Error(`${target.name} answered ${answer.statusCode}`);
  return { total: performance.now() - began, firstByte, bytes };
}

async function many(target: Target, body: object, stream: boolean, count: number, parallel: number): Promise<Sample[]> {
  const samples: Sample[] = [];
  let left = count;
  await Promise.all(
    Array.from({ length: parallel }, async () => {
      while (left-- > 0) samples.push(await once(target, body, stream));
    }),
  );
  return samples;
}

interface Scenario {
  readonly name: string;
  readonly body: object;
  readonly stream: boolean;
  readonly count: number;
  readonly parallel: number;
  readonly figure: (samples: readonly Sample[], ms: number) => number;
  readonly unit: string;
}

const message = (content: string): object[] => [{ role: "user", content }];
const short = { model: "acme/bench:Q8_0", messages: message("hi"), max_tokens: 1 };
const long = { model: "acme/bench:Q8_0", messages: message("long"), stream: true };

const scenarios: readonly Scenario[] = [
  {
    name: "one token, no stream, 1 connection, p50",
    body: short,
    stream: false,
    count: 100,
    parallel: 1,
    unit: "ms",
    figure: median("total"),
  },
  {
    name: "one token, no stream, 8 connections",
    body: short,
    stream: false,
    count: 200,
    parallel: 8,
    unit: "req/s",
    figure: (samples, ms) => (samples.length / ms) * 1000,
  },
  {
    name: "stream, first byte, 1 at a time, p50",
    body: long,
    stream: true,
    count: 10,
    parallel: 1,
    unit: "ms",
    figure: median("firstByte"),
  },
  {
    name: "stream of 150 tokens, 1 at a time, p50",
    body: long,
    stream: true,
    count: 10,
    parallel: 1,
    unit: "ms",
    figure: median("total"),
  },
  {
    name: "streams of 150 tokens, 4 at a time",
    body: long,
    stream: true,
    count: 20,
    parallel: 4,
    unit: "MB/s",
    figure: (samples, ms) => samples.reduce((sum, s) => sum + s.bytes, 0) / ms / 1000,
  },
];

async function cpuMs(pid: number): Promise<number> {
  const stat = (await readFile(`/proc/${pid}/stat`, "utf8").catch(() => "")).split(") ")[1]?.split(" ") ?? [];
  return (Number(stat[11] ?? 0) + Number(stat[12] ?? 0)) * 10;
}

async function run(): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), "gateway-bench-"));
  const cacheDir = join(root, "hub");
  const stateDir = join(root, "state");
  await mkdir(stateDir);
  const model = await cacheTalker({ cacheDir }, "acme/bench");
  await writeFile(join(stateDir, "gateway.yaml"), `version: 1\nmodels: [{ id: "${model}", preset: { threads: 1 } }]\n`);
  const settings = readSettings(
    ["serve", "--port", "0", "--state", stateDir, "--llama-server", await installedServer(), "--log-level", "silent"],
    { PATH: process.env["PATH"], HF_HUB_CACHE: cacheDir },
  );
  const gateway = await startGateway({ settings: settings.settings, logger: pino({ level: "silent" }) });
  try {
    const through: Target = { name: "gateway", origin: gateway.url, path: "/beta/v1/chat/completions", headers: {} };
    for (let tries = 0; gateway.status().sync !== "Synced" && tries < 200; tries++)
      await new Promise((resolve) => setTimeout(resolve, 50));
    await once(through, short, false);
    const direct = await modelProcess(stateDir, model);
    console.log(`| | direct | gateway | ratio (range over ${repetitions}) |\n|---|---:|---:|---:|`);
    for (const scenario of scenarios) {
      const rounds: { direct: number; gateway: number }[] = [];
      for (let round = 0; round < repetitions; round++) {
        const figures = { direct: 0, gateway: 0 };
        for (const [name, target] of [
          ["direct", direct],
          ["gateway", through],
        ] as const) {
          const began = performance.now();
          const samples = await many(target, scenario.body, scenario.stream, scenario.count, scenario.parallel);
          figures[name] = scenario.figure(samples, performance.now() - began);
        }
        rounds.push(figures);
      }
      const ratios = rounds.map((figures) => figures.gateway / figures.direct);
      const middle = (name: "direct" | "gateway"): string =>
        quantile(
          rounds.map((figures) => figures[name]),
          0.5,
        ).toFixed(2);
      console.log(
        `| ${scenario.name} | ${middle("direct")} ${scenario.unit} | ${middle("gateway")} ${scenario.unit} | ${quantile(ratios, 0.5).toFixed(2)} (${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}) |`,
      );
    }
    console.log(
      `\ngateway and client together: ${Math.round(process.memoryUsage().rss / 1e6)} MB, ${await cpuMs(process.pid)} ms of CPU`,
    );
  } finally {
    await gateway.stop();
    await agent.close();
    await rm(root, { recursive: true, force: true });
  }
}

/** Where the gateway itself sends the requests: the model's own process, with the key from its environment. */
async function modelProcess(stateDir: string, model: string): Promise<Target> {
  for (const pid of await findLeftovers(stateDir)) {
    const args = (await readFile(`/proc/${pid}/cmdline`, "utf8")).split("\0");
    if (!args.includes(model)) continue;
    const environment = (await readFile(`/proc/${pid}/environ`, "utf8")).split("\0");
    const key = environment.find((entry) => entry.startsWith("LLAMA_API_KEY="))?.slice("LLAMA_API_KEY=".length) ?? "";
    return {
      name: "direct",
      origin: `http://127.0.0.1:${args[args.indexOf("--port") + 1] ?? ""}`,
      path: "/v1/chat/completions",
      headers: { authorization: `Bearer ${key}` },
    };
  }
  throw new Error("the model's process was not found");
}

await run();
