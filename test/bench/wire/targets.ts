// What is measured, each in a process of its own: the model's process itself, nginx where it is installed, the bare proxy, the
// gateway with all that it does for a chat: key, admission, counters.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { freePort } from "../../../src/engines/process/free-port.ts";
import { addKey, keyFileName } from "../../../src/keys/key-file.ts";
import { cleanUp, type Ending } from "../../support/clean-up.ts";
import { commandLine } from "../../support/command.ts";
import { cacheTalker } from "../../support/folders.ts";
import { until } from "../../support/scratch.ts";

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
const rates = "/v1/chat/completions";

export async function startTargets(t: Ending): Promise<readonly Target[]> {
  const root = await mkdtemp(join(tmpdir(), "gateway-bench-"));
  cleanUp(t, () => rm(root, { recursive: true, force: true }));
  const cacheDir = join(root, "hub");
  const model = await cacheTalker({ cacheDir }, "acme/bench");
  const emulator = await started(t, [script("emulator")]);
  const bare = await started(t, [script("bare"), String(emulator.port)]);
  const common = { path: rates, model, headers: {}, closes: false };
  return [
    { ...common, name: "direct", port: emulator.port, closes: true, pids: [] },
    ...(await nginx(t, root, emulator.port)).map((found) => ({ ...common, ...found, name: "nginx" })),
    { ...common, name: "bare", port: bare.port, pids: [bare.pid] },
    { ...common, ...(await gateway(t, root, model, emulator.port)), name: "gateway", path: `/beta${rates}` },
  ];
}

async function started(t: Ending, args: readonly string[]): Promise<{ port: number; pid: number }> {
  const child = spawn(process.execPath, ["--max-semi-space-size=4", ...args], { stdio: ["pipe", "pipe", "inherit"] });
  cleanUp(t, async () => {
    child.stdin.end();
    if (child.exitCode === null) await once(child, "exit");
  });
  const [line]: unknown[] = await once(createInterface(child.stdout), "line");
  return { port: Number(line), pid: child.pid ?? 0 };
}

async function gateway(
  t: Ending,
  root: string,
  model: string,
  modelPort: number,
): Promise<Pick<Target, "port" | "pids" | "headers">> {
  const engine = join(root, "llama-server");
  await writeFile(
    engine,
    `#!/bin/sh\nexec '${process.execPath}' '${script("stand-in-router")}' '${model}' ${modelPort} "$@"\n`,
  );
  await chmod(engine, 0o755);
  const stateDir = join(root, "state");
  await mkdir(stateDir);
  const { key } = await addKey(join(stateDir, keyFileName), { name: "bench", expiresAt: undefined, now: Date.now() });
  await writeFile(join(stateDir, "gateway.yaml"), `version: 1\nmodels: [{ id: "${model}" }]\n`);
  const port = await freePort();
  // For a profile: --cpu-prof --cpu-prof-dir=FOLDER
  const flags = process.env["BENCH_FLAGS"]?.split(" ") ?? [];
  const [node, ...args] = commandLine(["serve", "--port", String(port), "--state", stateDir, "--queue-limit", "1000"]);
  const child = spawn(node, [...flags, ...args], {
    env: {
      PATH: process.env["PATH"] ?? "",
      HF_HUB_CACHE: join(root, "hub"),
      LLAMA_SERVER: engine,
      GATEWAY_LOG_LEVEL: "error",
    },
    stdio: ["ignore", flags.length > 0 ? "inherit" : "ignore", "inherit"],
  });
  cleanUp(t, async () => {
    child.kill("SIGTERM");
    if (child.exitCode === null) await once(child, "exit");
  });
  const headers = { authorization: `Bearer ${key}` };
  await until(
    "the gateway answers",
    async () => {
      const look = await fetch(`http://127.0.0.1:${port}/beta/v1/models`, { headers }).catch(() => null);
      return look?.status === 200 && (await look.text()).includes(model);
    },
    30_000,
  );
  return { port, headers, pids: [child.pid ?? 0] };
}

async function nginx(t: Ending, root: string, modelPort: number): Promise<Pick<Target, "port" | "pids">[]> {
  const port = await freePort();
  const configuration = join(root, "nginx.conf");
  const places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
    .map((name) => `${name}_temp_path ${root}/${name};`)
    .join(" ");
  await writeFile(
    configuration,
    `daemon off; worker_processes 1; pid ${root}/nginx.pid; error_log stderr error; events { worker_connections 4096; }
    http { access_log off; ${places} client_max_body_size 64m; client_body_buffer_size 64m; keepalive_requests 1000000;
      upstream model { ${`server 127.0.0.1:${modelPort} max_fails=0;`.repeat(4)} keepalive 64; }
      server { listen 127.0.0.1:${port}; location / { proxy_pass http://model; proxy_http_version 1.1;
        proxy_set_header Connection ""; proxy_buffering off; proxy_next_upstream error non_idempotent; } } }`,
  );
  const child = spawn("nginx", ["-c", configuration], { stdio: ["ignore", "ignore", "ignore"] });
  const isThere = await once(child, "spawn").then(
    () => true,
    () => false,
  );
  if (!isThere) {
    console.error("nginx: not installed, so left out");
    return [];
  }
  cleanUp(t, async () => {
    child.kill("SIGTERM");
    if (child.exitCode === null) await once(child, "exit");
  });
  await until(
    "nginx answers",
    () =>
      fetch(`http://127.0.0.1:${port}/`).then(
        () => true,
        () => false,
      ),
    10_000,
  );
  const workers = await readFile(`/proc/${child.pid}/task/${child.pid}/children`, "utf8");
  return [{ port, pids: workers.trim().split(" ").map(Number) }];
}
