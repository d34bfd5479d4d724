// How soon a gateway is ready and gone, and what it takes at rest: a process of its own, as `npm start` has it. Each row has its goal.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../src/engines/process/free-port.ts";
import { starterId } from "../../src/starter/starter-model.ts";
import { withCleanUp } from "../support/clean-up.ts";
import { commandLine } from "../support/command.ts";
import { installedServer } from "../support/engine.ts";
import { processorTime, residentMegabytes } from "../support/processes.ts";
import { untilReady } from "./until-ready.ts";
import { startBare } from "./wire/targets.ts";

const repetitions = 5;
const streams = 1_000;
/** Work of the start goes on: V8 collects what it left 16 to 33 s later, which takes as much as a minute of rest. */
const settleMs = 45_000;
const idleMs = 60_000;

interface Life {
  readonly bareMs: number;
  readonly readyMs: number;
  readonly firstMs: number;
  readonly stopMs: number;
  /** Of the last one only, which is given the time to rest. */
  readonly rest?: { readonly megabytes: number; readonly corePercent: number; readonly streamKilobytes: number };
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** ms until a proxy of 60 lines listens: how fast this machine is. */
function bareStart(): Promise<number> {
  return withCleanUp(async (t) => {
    const began = performance.now();
    await startBare(t, 9);
    return performance.now() - began;
  });
}

async function live(root: string, isLast: boolean): Promise<Life> {
  const bareMs = await bareStart();
  const port = await freePort();
  const began = performance.now();
  const [node, ...args] = commandLine(["serve", "--port", String(port), "--state", join(root, "state")]);
  const child = spawn(node, args, {
    env: {
      PATH: process.env["PATH"] ?? "",
      HF_HUB_CACHE: join(root, "hub"),
      LLAMA_SERVER: await installedServer(),
      GATEWAY_EVENT_LISTENERS: String(streams),
    },
    stdio: ["ignore", "pipe", "ignore"],
  });
  const exited = once(child, "exit");
  await untilReady(child.stdout);
  const readyMs = performance.now() - began;
  await chat(port);
  const firstMs = performance.now() - began - readyMs;
  const rest = isLast ? await restOf(child.pid ?? 0, port) : undefined;
  const told = performance.now();
  child.kill("SIGTERM");
  await exited;
  return { bareMs, readyMs, firstMs, stopMs: performance.now() - told, ...(rest && { rest }) };
}

async function chat(port: number): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${port}/beta/v1/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ model: starterId, max_tokens: 1, messages: [{ role: "user", content: "hi" }] }),
  });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`the first chat: ${response.status} ${text}`);
}

async function restOf(pid: number, port: number): Promise<NonNullable<Life["rest"]>> {
  await pause(settleMs);
  const [cpu, since] = [await processorTime([pid]), performance.now()];
  await pause(idleMs);
  const corePercent = (((await processorTime([pid])) - cpu) / (performance.now() - since)) * 100;
  const megabytes = await residentMegabytes(pid);
  for (let n = 0; n < streams; n++) {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => undefined);
    socket.write("GET /api/events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
    await once(socket, "data");
  }
  const streamKilobytes = (((await residentMegabytes(pid)) - megabytes) * 1024) / streams;
  return { megabytes, corePercent, streamKilobytes };
}

interface Row {
  readonly name: string;
  readonly unit: string;
  /** The median is to be below. */
  readonly goal?: number;
  readonly of: (life: Life) => number | undefined;
}

const rows: readonly Row[] = [
  { name: "started to ready, a model there", unit: "ms", goal: 600, of: ({ readyMs }) => readyMs },
  // The goal's 600 ms are of a machine where the proxy takes 231.
  {
    name: "the same, beside the start of a bare proxy",
    unit: "×",
    goal: 2.6,
    of: ({ readyMs, bareMs }) => readyMs / bareMs,
  },
  { name: "ready to the first answer", unit: "ms", goal: 400, of: ({ firstMs }) => firstMs },
  { name: "told to stop to gone", unit: "ms", of: ({ stopMs }) => stopMs },
  { name: "memory at rest", unit: "MB", goal: 80, of: ({ rest }) => rest?.megabytes },
  { name: "processor time at rest", unit: "% of a core", goal: 0.2, of: ({ rest }) => rest?.corePercent },
  { name: `each of ${streams} idle streams`, unit: "kB", goal: 26, of: ({ rest }) => rest?.streamKilobytes },
];

function report({ name, unit, goal, of }: Row, lives: readonly Life[]): string {
  const sorted = lives.flatMap((life) => of(life) ?? []).toSorted((a, b) => a - b);
  const show = (value = Number.NaN): string => value.toFixed(["% of a core", "×"].includes(unit) ? 2 : 0);
  const median = sorted[Math.floor(sorted.length / 2)] ?? Number.NaN;
  const [text, verdict] = goal === undefined ? ["", ""] : [`< ${goal} ${unit}`, median < goal ? "reached" : "short"];
  return `| ${name} | ${show(median)} ${unit} (${show(sorted[0])}–${show(sorted.at(-1))}) | ${text} | ${verdict} |`;
}

const root = await mkdtemp(join(tmpdir(), "gateway-life-"));
try {
  // The first one writes the starter model and its document.
  await live(root, false);
  const lives: Life[] = [];
  for (let n = 0; n < repetitions; n++) lives.push(await live(root, n === repetitions - 1));
  console.log("| | median (range) | goal | |\n|---|---:|---:|---|");
  for (const row of rows) console.log(report(row, lives));
} finally {
  await rm(root, { recursive: true, force: true });
}
