// What a pull costs beside the tools that people know: the same file from the same loopback hub, in turns, as ratios.
// Ours is hashed and flushed to disk,
// which theirs is not but for one row. Arguments: megabytes without a limit (4096), megabytes with a
// limit for each connection (1024), folder to write to.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { pullModel } from "../../src/cache/download/pull.ts";
import { parseModelId } from "../../src/core/ids.ts";
import { createHubClient } from "../../src/hub/client.ts";
import { type Hub, startHub } from "./hub-process.ts";

interface Way {
  readonly name: string;
  run(hub: Hub, folder: string): Promise<void>;
}

const mib = 1024 * 1024;
const rounds = 3;
const [free = "4096", limited = "1024", folder = tmpdir()] = process.argv.slice(3);
const worst = { delayMs: 0, memory: 0, controlMs: 0 };

function tool(name: string): string | undefined {
  const folders = (process.env["PATH"] ?? "").split(delimiter);
  return folders.map((path) => join(path, name)).find((path) => existsSync(path));
}

async function command(path: string, args: readonly string[]): Promise<void> {
  // What this machine does to a thread that does nothing, as a measure for ours.
  const delays = monitorEventLoopDelay({ resolution: 5 });
  delays.enable();
  const child = spawn(path, args, { stdio: ["ignore", "ignore", "inherit"] });
  const [code]: unknown[] = await once(child, "exit");
  delays.disable();
  worst.controlMs = Math.max(worst.controlMs, delays.max / 1e6);
  if (code !== 0) throw new Error(`${path} ended with ${String(code)}`);
}

const ours: Way = {
  name: "pull",
  async run(hub, cacheDir) {
    const id = parseModelId("acme/big-GGUF:Q8_0");
    if (!id) throw new Error("no id");
    const client = createHubClient({ endpoint: hub.endpoint, token: undefined });
    const delays = monitorEventLoopDelay({ resolution: 5 });
    const idle = process.memoryUsage().rss;
    const look = setInterval(() => {
      worst.memory = Math.max(worst.memory, process.memoryUsage().rss - idle);
    }, 20);
    delays.enable();
    try {
      await pullModel({
        client,
        cacheDir,
        gateway: "bench",
        id,
        freeBytes: () => Promise.resolve(undefined),
        signal: new AbortController().signal,
        onProgress: () => undefined,
      });
    } finally {
      delays.disable();
      clearInterval(look);
      worst.delayMs = Math.max(worst.delayMs, delays.max / 1e6);
      await client.close();
    }
  },
};

function others(): Way[] {
  const curl = tool("curl");
  const aria2c = tool("aria2c");
  for (const [name, path] of Object.entries({ curl, aria2c })) {
    if (path === undefined) console.log(`${name}: skipped, it is not installed`);
  }
  const url = ({ endpoint, path }: Hub): string => `${endpoint}/acme/big-GGUF/${path}`;
  return [
    ...(curl
      ? [
          { name: "curl", run: (hub: Hub, to: string) => command(curl, ["-sSfo", join(to, "x"), url(hub)]) },
          {
            name: "curl, check, sync",
            async run(hub: Hub, to: string) {
              const file = join(to, "x");
              await command(curl, ["-sSfo", file, url(hub)]);
              await command("sha256sum", [file]);
              await command("sync", [file]);
            },
          },
        ]
      : []),
    ...(aria2c
      ? [8, 1].map((count) => ({
          name: `aria2c -x${count}`,
          run: (hub: Hub, to: string) =>
            command(aria2c, ["-q", `-x${count}`, `-s${count}`, "-k1M", "--file-allocation=none", "-d", to, url(hub)]),
        }))
      : []),
  ];
}

async function measure(what: string, size: number, rate: number): Promise<void> {
  console.log(`\n${what}, ${Math.round(size / mib)} MiB`);
  const ways = [ours, ...others()];
  const seconds = new Map<Way, number[]>(ways.map((way) => [way, []]));
  const { hub, stop } = await startHub(size, rate);
  try {
    for (let round = 0; round < rounds; round++) {
      for (const way of ways) {
        const to = await mkdtemp(join(folder, "pull-"));
        const began = performance.now();
        try {
          await way.run(hub, to);
          seconds.get(way)?.push((performance.now() - began) / 1000);
        } finally {
          await rm(to, { recursive: true, force: true });
        }
      }
    }
  } finally {
    await stop();
  }
  const median = (way: Way): number => seconds.get(way)?.toSorted((a, b) => a - b)[Math.floor(rounds / 2)] ?? 0;
  for (const way of ways) {
    const rates = (seconds.get(way) ?? []).map((each) => (size / each / 1e6).toFixed(0)).join(", ");
    const ratio = (median(way) / median(ours)).toFixed(2);
    console.log(`${way.name.padEnd(18)} ${rates.padStart(18)} MB/s   takes ${ratio} of the pull's time`);
  }
}

function tellWorst(): void {
  const [own, control] = [worst.delayMs, worst.controlMs].map((ms) => `${ms.toFixed(1)} ms`);
  const memory = `${Math.round(worst.memory / mib)} MiB`;
  console.log(`longest stop of the event loop ${own} (${control} while others pull), memory ${memory} above idle`);
  Object.assign(worst, { delayMs: 0, memory: 0, controlMs: 0 });
}

await measure("20 MB/s for each connection", Number(limited) * mib, 20_000_000);
tellWorst();
await measure("300 MB/s for each connection, as a line of 2.5 Gbit/s gives", Number(limited) * mib, 300_000_000);
tellWorst();
await measure("no limit", Number(free) * mib, 0);
tellWorst();
