// How soon a command has printed what it prints, Node's own start included, beside a running gateway.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { starterId } from "../../src/starter/starter-model.ts";
import { commandLine } from "../support/command.ts";
import { installedServer } from "../support/engine.ts";
import { judge, quantile } from "./goals.ts";
import { untilReady } from "./until-ready.ts";

const repetitions = 10;
const goalMs = 150;

const root = await mkdtemp(join(tmpdir(), "gateway-commands-"));
const env = {
  PATH: process.env["PATH"] ?? "",
  HOME: root,
  HF_HUB_CACHE: join(root, "hub"),
  HF_ENDPOINT: "http://127.0.0.1:9",
  GATEWAY_STATE: join(root, "state"),
  GATEWAY_PORT: "0",
  LLAMA_SERVER: await installedServer(),
};
const document = join(root, "state", "gateway.yaml");

const commands: readonly (readonly string[])[] = [
  ...[
    "version",
    "help",
    "status",
    "models",
    "ps",
    "requests",
    "plan",
    "export",
    "history",
    "logs",
    "rpc",
    "voice",
    "gc",
  ].map((name) => [name]),
  ["help", "run"],
  ["completion", "bash", "--", "sta"],
  ["completion", "bash", "--", "show", ""],
  ["show", starterId],
  ["ctx", starterId],
  ["load", starterId],
  ["run", starterId, "hi"],
  ["wait", "--for", "synced"],
  ["reconcile"],
  ["key", "list"],
  ["diff", "-f", document],
  ["apply", "-f", document, "--dry-run"],
  ["validate", document],
  ["package", "launchd"],
  ["doctor"],
];

/** ms of each run, after one that fills caches. */
function timesOf([program, ...args]: readonly [string, ...string[]]): number[] {
  const times = Array.from({ length: repetitions + 1 }, () => {
    const began = performance.now();
    const { status, stderr } = spawnSync(program, args, { env, cwd: root, encoding: "utf8" });
    if (status !== 0) throw new Error(`${args.slice(1).join(" ")} exits with ${status}: ${stderr}`);
    return performance.now() - began;
  });
  return times.slice(1);
}

const [node, ...serve] = commandLine(["serve"]);
const gateway = spawn(node, serve, { env, stdio: ["ignore", "pipe", "ignore"] });
const exited = once(gateway, "exit");
try {
  await untilReady(gateway.stdout);
  console.log("| | median (range), ms | |\n|---|---:|---|");
  const row = (name: string, times: readonly number[], goal: string): void => {
    const [median, least, most] = [0.5, 0, 1].map((share) => quantile(times, share).toFixed(0));
    console.log(`| ${name} | ${median} (${least}–${most}) | ${goal} |`);
  };
  row("node -e 0", timesOf([node, "-e", "0"]), "");
  for (const command of commands) {
    const times = timesOf(commandLine(command));
    const name = command.join(" ").replace(document, "gateway.yaml");
    row(name, times, judge(name, "time", quantile(times, 0.5), { most: goalMs }, { times }));
  }
} finally {
  gateway.kill("SIGTERM");
  await exited;
  await rm(root, { recursive: true, force: true, maxRetries: 5 });
}
