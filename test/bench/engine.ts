// What the gateway costs beside the engine's own router, both with a real model's process: the same requests to each in turn, after one round to
// warm up, as ratios of one run. The engine takes all cores that it wants. Argument: rounds (5).
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../src/engines/process/free-port.ts";
import { cleanUp, type Ending, withCleanUp } from "../support/clean-up.ts";
import { installedServer } from "../support/engine.ts";
import { until } from "../support/scratch.ts";
import { type Goal, inTurn, judge, quantile } from "./goals.ts";
import { type Answers, type Ask, ask } from "./wire/load.ts";
import { startGateway, type Target } from "./wire/targets.ts";

interface Row {
  readonly name: string;
  readonly what: Ask;
  readonly count: number;
  readonly connections: number;
  readonly figure: (answers: Answers) => number;
  readonly unit: string;
  readonly goal?: Goal;
}

const token: Ask = { stream: false, tokens: 1 };
const stream: Ask = { stream: true, tokens: 151, text: "long" };
const p50 = (values: readonly number[]): number => quantile(values, 0.5);

const rows: readonly Row[] = [
  {
    name: "chat of one token, one connection, p50",
    what: token,
    count: 300,
    connections: 1,
    unit: "ms",
    figure: ({ totals }) => p50(totals),
    goal: { most: 0.9 },
  },
  {
    name: "chats of one token, eight connections",
    what: token,
    count: 600,
    connections: 8,
    unit: "req/s",
    figure: ({ totals, ms }) => (totals.length / ms) * 1000,
  },
  {
    name: "first byte of a stream, four at once, p50",
    what: stream,
    count: 60,
    connections: 4,
    unit: "ms",
    figure: ({ firsts }) => p50(firsts),
    goal: { most: 1 },
  },
  {
    name: "streams of 151 tokens, four at once",
    what: stream,
    count: 60,
    connections: 4,
    unit: "events/s",
    figure: ({ events, ms }) => (events / ms) * 1000,
  },
];

async function startRouter(t: Ending, root: string, { model }: Target): Promise<Target> {
  const preset = join(root, "preset.ini");
  await writeFile(preset, `[*]\noffline = true\n[${model}]\nhf-repo = ${model}\n`);
  const port = await freePort();
  const args = ["--host", "127.0.0.1", "--port", String(port), "--models-preset", preset, "--no-webui"];
  const env = { PATH: process.env["PATH"] ?? "", HF_HUB_CACHE: join(root, "hub") };
  const child = spawn(await installedServer(), args, { stdio: "ignore", env });
  cleanUp(t, async () => {
    child.kill("SIGTERM");
    if (child.exitCode === null) await once(child, "exit");
  });
  await until("the router answers", async () =>
    fetch(`http://127.0.0.1:${port}/health`).then(
      ({ ok }) => ok,
      () => false,
    ),
  );
  const pids = [child.pid ?? 0];
  return { name: "router", path: "/v1/chat/completions", model, port, headers: {}, closes: false, pids };
}

async function measure({ name, what, count, connections, figure, unit, goal }: Row, targets: readonly Target[]) {
  const measured = Object.fromEntries(targets.map((target) => [target.name, [] as number[]]));
  for (const target of targets) await ask(target, what, count, connections);
  for (let round = 0; round < rounds; round++)
    for (const target of inTurn(targets, round))
      measured[target.name]?.push(figure(await ask(target, what, count, connections)));
  const [router = [], gateway = []] = targets.map((target) => measured[target.name] ?? []);
  const ratios = gateway.map((value, round) => value / (router[round] ?? Number.NaN));
  const verdict = goal === undefined ? "" : judge("engine", name, p50(ratios), goal, measured);
  const range = `${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)}`;
  const cells = [router, gateway].map((values) => `${p50(values).toFixed(2)} ${unit}`);
  console.log(`| ${name} | ${cells.join(" | ")} | ${p50(ratios).toFixed(2)} (${range}) | ${verdict} |`);
}

const rounds = Number(process.argv[3] ?? 5);
await withCleanUp(async (t) => {
  const root = await mkdtemp(join(tmpdir(), "gateway-bench-"));
  cleanUp(t, () => rm(root, { recursive: true, force: true }));
  const gateway = await startGateway(t, root, { engine: installedServer });
  const router = await startRouter(t, root, gateway);
  console.log("| | router | gateway | ratio (range) | goal |\n|---|---:|---:|---:|---|");
  for (const row of rows) await measure(row, [router, gateway]);
});
