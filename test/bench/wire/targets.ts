// What is measured, each in a process of its own: the model's process itself, nginx and haproxy where they are installed, the bare
// proxy, the gateway with all that it does for a chat: key, admission, counters.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { freePort } from "../../../src/engines/process/free-port.ts";
import { makeKey } from "../../../src/keys/key-changes.ts";
import { hashOf, keyFileName } from "../../../src/keys/key-file.ts";
import { renderKeyList } from "../../../src/keys/key-list.ts";
import { cleanUp, type Ending } from "../../support/clean-up.ts";
import { commandLine } from "../../support/command.ts";
import { cacheTalker } from "../../support/folders.ts";
import { until } from "../../support/scratch.ts";
import { fillCache } from "../full-cache.ts";
import { pin } from "./pin.ts";
import { startProxies } from "./proxies.ts";

export interface Target {
  readonly name: string;
  readonly port: number;
  readonly path: string;
  readonly model: string;
  readonly headers: Readonly<Record<string, string>>;
  /** Ends the connection after a stream. */
  readonly closes: boolean;
  /** Of the processes whose cost is measured. */
  readonly pids: readonly number[];
}

const script = (name: string): string => fileURLToPath(new URL(`./${name}.js`, import.meta.url));
const chats = "/v1/chat/completions";
const node = [process.execPath, "--max-semi-space-size=4"] as const;

interface TargetsOptions {
  /** Also so many gateways that have a lot to hold, and as many that have little. */
  readonly pairs?: number;
  /** Of the gateways. */
  readonly env?: Readonly<Record<string, string>>;
  /** A path; null: the one for Node. */
  readonly emulator?: string | null;
}

export async function startTargets(
  t: Ending,
  { pairs: count = 0, env = {}, emulator: program = null }: TargetsOptions = {},
): Promise<readonly Target[]> {
  const root = await mkdtemp(join(tmpdir(), "gateway-bench-"));
  cleanUp(t, () => rm(root, { recursive: true, force: true }));
  const emulator = await started(t, program === null ? [...node, script("emulator")] : [program]);
  const bare = await startBare(t, emulator.port);
  const engine = standIn(root, emulator.port);
  const small = await startGateway(t, join(root, "small"), { engine, env });
  const pairs: Target[] = [];
  for (let pair = 0; pair < count; pair++)
    for (const name of ["full", "empty"])
      pairs.push({
        ...(await startGateway(t, join(root, `${name}-${pair}`), { engine, isFull: name === "full", env })),
        name,
      });
  const common = { path: chats, model: small.model, headers: {}, closes: false };
  const targets: readonly Target[] = [
    { ...common, name: "direct", port: emulator.port, closes: true, pids: [] },
    ...(await startProxies(t, root, emulator.port)).map((proxy) => ({ ...common, ...proxy })),
    { ...common, name: "bare", port: bare.port, pids: [bare.pid] },
    small,
    { ...small, name: "Ollama", path: "/alpha/api/chat" },
    ...pairs,
  ];
  await pin(1, [emulator.pid]);
  await pin(0, [...new Set(targets.flatMap(({ pids }) => pids))]);
  return targets;
}

/** Resolves when it listens; its one upstream is that port. */
export const startBare = (t: Ending, modelPort: number): Promise<{ port: number; pid: number }> =>
  started(t, [...node, script("bare"), String(modelPort)]);

async function started(
  t: Ending,
  [program, ...args]: readonly [string, ...string[]],
): Promise<{ port: number; pid: number }> {
  const child = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
  cleanUp(t, async () => {
    child.stdin.end();
    if (child.exitCode === null) await once(child, "exit");
  });
  const [line]: unknown[] = await once(createInterface(child.stdout), "line");
  return { port: Number(line), pid: child.pid ?? 0 };
}

/** A router whose every model is the process on that port. */
function standIn(root: string, modelPort: number): (models: readonly string[]) => Promise<string> {
  return async (models) => {
    const path = join(root, `llama-server-${models.length}`);
    const command = `'${process.execPath}' '${script("stand-in-router")}' '${models.join(",")}' ${modelPort} "$@"`;
    await writeFile(path, `#!/bin/sh\nexec ${command}\n`, { mode: 0o755 });
    return path;
  };
}

interface GatewayOptions {
  /** Path of the program that is started for these models. */
  readonly engine: (models: readonly string[]) => Promise<string>;
  /** With 1,000 keys, 1,000 models in 5,000 files, and 200 of them in the document. */
  readonly isFull?: boolean;
  readonly env?: Readonly<Record<string, string>>;
}

/** Its model, `acme/bench`, is in the cache `hub` of the folder. */
export async function startGateway(
  t: Ending,
  root: string,
  { engine, isFull = false, env = {} }: GatewayOptions,
): Promise<Target> {
  const [stateDir, cacheDir] = [join(root, "state"), join(root, "hub")];
  await mkdir(stateDir, { recursive: true });
  const model = await cacheTalker({ cacheDir }, "acme/bench");
  const models = [model, ...(isFull ? (await fillCache(cacheDir)).slice(0, 199) : [])];
  const keys = Array.from({ length: isFull ? 1_000 : 1 }, makeKey);
  const createdAt = new Date().toISOString();
  const entries = keys.map((key, index) => ({ name: `bench-${index}`, hash: hashOf(key), createdAt }));
  await writeFile(join(stateDir, keyFileName), renderKeyList(entries), { mode: 0o600 });
  await writeFile(join(stateDir, "gateway.yaml"), JSON.stringify({ version: 1, models }));
  const port = await freePort();
  // For a profile: --cpu-prof --cpu-prof-dir=FOLDER
  const flags = process.env["BENCH_FLAGS"]?.split(" ") ?? [];
  const [node, ...args] = commandLine(["serve", "--port", String(port), "--state", stateDir, "--queue-limit", "1000"]);
  const child = spawn(node, [...flags, ...args], {
    env: {
      PATH: process.env["PATH"] ?? "",
      HF_HUB_CACHE: cacheDir,
      LLAMA_SERVER: await engine(models),
      GATEWAY_LOG_LEVEL: "error",
      ...env,
    },
    stdio: ["ignore", flags.length > 0 ? "inherit" : "ignore", "inherit"],
  });
  cleanUp(t, async () => {
    child.kill("SIGTERM");
    if (child.exitCode === null) await once(child, "exit");
  });
  const headers = { authorization: `Bearer ${keys.at(-1)}` };
  await until(
    "the gateway is in the state of its document",
    async () => {
      const look = await fetch(`http://127.0.0.1:${port}/status`, { headers }).catch(() => null);
      return look?.status === 200 && ((await look.json()) as { sync?: string }).sync === "Synced";
    },
    30_000,
  );
  return { name: "gateway", path: `/beta${chats}`, model, port, headers, closes: false, pids: [child.pid ?? 0] };
}
