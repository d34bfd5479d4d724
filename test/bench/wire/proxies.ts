// The proxies that people know, each a process of its own in front of the model's process; none where it is not installed.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../../../src/engines/process/free-port.ts";
import { cleanUp, type Ending } from "../../support/clean-up.ts";
import { until } from "../../support/scratch.ts";

export interface Proxy {
  readonly name: string;
  readonly port: number;
  readonly pids: readonly number[];
}

export async function startProxies(t: Ending, root: string, modelPort: number): Promise<Proxy[]> {
  return [...(await nginx(t, root, modelPort)), ...(await haproxy(t, root, modelPort))];
}

async function nginx(t: Ending, root: string, modelPort: number): Promise<Proxy[]> {
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
  const child = await started(t, "nginx", ["-c", configuration], port);
  if (!child) return [];
  const workers = await readFile(`/proc/${child.pid}/task/${child.pid}/children`, "utf8");
  return [{ name: "nginx", port, pids: workers.trim().split(" ").map(Number) }];
}

async function haproxy(t: Ending, root: string, modelPort: number): Promise<Proxy[]> {
  const port = await freePort();
  const configuration = join(root, "haproxy.cfg");
  await writeFile(
    configuration,
    `global
  maxconn 4096
  nbthread 1
defaults
  mode http
  timeout connect 5s
  timeout client 60s
  timeout server 60s
  retries 3
  retry-on conn-failure empty-response
frontend clients
  bind 127.0.0.1:${port}
  default_backend model
backend model
  http-reuse safe
  server model 127.0.0.1:${modelPort}
`,
  );
  const child = await started(t, "haproxy", ["-db", "-f", configuration], port);
  return child ? [{ name: "haproxy", port, pids: [child.pid ?? 0] }] : [];
}

/** Null where it is not installed. */
async function started(t: Ending, name: string, args: readonly string[], port: number): Promise<ChildProcess | null> {
  const child = spawn(name, args, { stdio: ["ignore", "ignore", "ignore"] });
  const isThere = await once(child, "spawn").then(
    () => true,
    () => false,
  );
  if (!isThere) {
    console.error(`${name}: not installed, so left out`);
    return null;
  }
  cleanUp(t, async () => {
    child.kill("SIGTERM");
    if (child.exitCode === null) await once(child, "exit");
  });
  await until(
    `${name} answers`,
    () =>
      fetch(`http://127.0.0.1:${port}/`).then(
        () => true,
        () => false,
      ),
    10_000,
  );
  return child;
}
