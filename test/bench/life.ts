// How soon a gateway is ready and gone, and what a thousand idle streams cost it: a process of its own, as `npm start` has it.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { get } from "node:http";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "../../src/engines/process/free-port.ts";
import { commandLine } from "../support/command.ts";
import { installedServer } from "../support/engine.ts";
import { residentMegabytes } from "../support/processes.ts";

const repetitions = 5;
const streams = 1_000;

interface Life {
  readonly readyMs: number;
  readonly stopMs: number;
  readonly megabytes: number;
  readonly withStreams: number | null;
}

function isReady(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    get({ host: "127.0.0.1", port, path: "/readyz", agent: false }, (response) => {
      response.resume();
      resolve(response.statusCode === 200);
    }).on("error", () => resolve(false));
  });
}

async function live(root: string, holdStreams: boolean): Promise<Life> {
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
    stdio: "ignore",
  });
  const exited = once(child, "exit");
  while (!(await isReady(port))) await new Promise((resolve) => setTimeout(resolve, 2));
  const readyMs = performance.now() - began;
  const pid = child.pid ?? 0;
  const megabytes = await residentMegabytes(pid);
  if (holdStreams) {
    for (let n = 0; n < streams; n++) {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => undefined);
      socket.write("GET /api/events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
      await once(socket, "data");
    }
  }
  const withStreams = holdStreams ? await residentMegabytes(pid) : null;
  const told = performance.now();
  child.kill("SIGTERM");
  await exited;
  return { readyMs, stopMs: performance.now() - told, megabytes, withStreams };
}

function spread(values: readonly number[], unit: string): string {
  const sorted = values.toSorted((a, b) => a - b).map(Math.round);
  return `${sorted[Math.floor(sorted.length / 2)]} ${unit} (${sorted[0]}–${sorted.at(-1)})`;
}

const root = await mkdtemp(join(tmpdir(), "gateway-life-"));
try {
  // The first one writes the starter model and its document.
  await live(root, false);
  const lives: Life[] = [];
  for (let n = 0; n < repetitions; n++) lives.push(await live(root, n === repetitions - 1));
  const streamed = lives.flatMap(({ withStreams }) => (withStreams === null ? [] : [withStreams]));
  console.log("| | median (range) |\n|---|---:|");
  console.log(
    `| started to ready, a model there | ${spread(
      lives.map(({ readyMs }) => readyMs),
      "ms",
    )} |`,
  );
  console.log(
    `| told to stop to gone | ${spread(
      lives.map(({ stopMs }) => stopMs),
      "ms",
    )} |`,
  );
  console.log(
    `| memory | ${spread(
      lives.map(({ megabytes }) => megabytes),
      "MB",
    )} |`,
  );
  console.log(`| with ${streams} idle streams | ${spread(streamed, "MB")} |`);
} finally {
  await rm(root, { recursive: true, force: true });
}
