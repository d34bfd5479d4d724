// What chats feel of a pull: the p99 of one after another, through a gateway at rest and while it pulls a large file from a loopback
// hub, as fast as that sends, and the loop reconciles each second. In turns, as ratios. Arguments: megabytes (1024), rounds (3).
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cleanUp, type Ending } from "../support/clean-up.ts";
import { judge } from "./goals.ts";
import { ask } from "./wire/load.ts";
import { startEmulator, startGateway, type Target } from "./wire/targets.ts";

const [megabytes = 1024, rounds = 3] = process.argv.slice(3).map(Number);
const pulled = "acme/big-GGUF:Q8_0";
const chats = 200;

function quantile(values: readonly number[], share: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length * share)] ?? Number.NaN;
}

async function startHub(t: Ending): Promise<string> {
  const script = fileURLToPath(new URL("./pull-hub.js", import.meta.url));
  const child = spawn(process.execPath, [script, String(megabytes * 1024 * 1024), "0"], {
    stdio: ["pipe", "pipe", "inherit"],
  });
  cleanUp(t, async () => {
    child.stdin.end();
    await once(child, "exit");
  });
  const [line]: unknown[] = await once(child.stdout.setEncoding("utf8"), "data");
  return (JSON.parse(String(line)) as { endpoint: string }).endpoint;
}

function call({ port, headers }: Target, method: string, path: string, body?: object): Promise<Response> {
  return fetch(`http://127.0.0.1:${port}${path}`, {
    method,
    headers: { ...headers, "content-type": "application/json" },
    ...(body && { body: JSON.stringify(body) }),
  });
}

/** ms of chats, one after another, until the work is done; of `chats` of them without. */
async function chatTimes(gateway: Target, work?: Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  let isOver = work === undefined;
  void work?.finally(() => {
    isOver = true;
  });
  do times.push(...(await ask(gateway, { stream: false }, chats, 1)).totals);
  while (!isOver);
  return times;
}

async function pull(gateway: Target): Promise<void> {
  const answer = await call(gateway, "POST", "/alpha/api/pull", { model: pulled, stream: false });
  const text = await answer.text();
  if (!answer.ok || !text.includes("success")) throw new Error(`the pull failed: ${text}`);
}

async function run(t: Ending): Promise<void> {
  const root = await mkdtemp(join(tmpdir(), "gateway-bench-"));
  cleanUp(t, () => rm(root, { recursive: true, force: true }));
  const hub = await startHub(t);
  const emulator = await startEmulator(t);
  const gateway = await startGateway(t, root, emulator.port, {
    env: { HF_ENDPOINT: hub, GATEWAY_RESYNC: "1" },
  });
  await ask(gateway, { stream: false }, 3_000, 1);
  const measured: Record<string, number[]> = { idle: [], pulling: [], seconds: [] };
  for (let round = 0; round < rounds; round++) {
    const idle = [...(await chatTimes(gateway)), ...(await chatTimes(gateway)), ...(await chatTimes(gateway))];
    const began = performance.now();
    const work = pull(gateway);
    const during = await chatTimes(gateway, work);
    await work;
    measured["seconds"]?.push((performance.now() - began) / 1000);
    measured["idle"]?.push(quantile(idle, 0.99));
    measured["pulling"]?.push(quantile(during, 0.99));
    const gone = await call(gateway, "DELETE", "/alpha/api/delete", { model: pulled });
    if (!gone.ok) throw new Error(`the pulled model was not deleted: ${await gone.text()}`);
  }
  const of = (name: string): number => quantile(measured[name] ?? [], 0.5);
  console.log(
    `chat p99: idle ${of("idle").toFixed(2)} ms, while ${megabytes} MiB are pulled in ${of("seconds").toFixed(1)} s ${of("pulling").toFixed(2)} ms`,
  );
  const ratio = of("pulling") / of("idle");
  console.log(`ratio ${ratio.toFixed(2)}; ${judge("while-pulling", "chat p99", ratio, { most: 1.5 }, measured)}`);
}

const undo: (() => Promise<void>)[] = [];
try {
  await run({ after: (step) => void undo.push(step) });
} finally {
  for (const step of undo) await step();
}
