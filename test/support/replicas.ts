// Gateways with one document behind the real HAProxy, as docs/deploy/haproxy.cfg has it.
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { freePort } from "../../src/engines/process/free-port.ts";
import { packageRoot } from "../../src/settings/settings.ts";
import type { Ending } from "./clean-up.ts";
import { type RunningCommand, startCommand } from "./command.ts";
import { cacheTalker, type GatewayFolders, makeFolders } from "./folders.ts";
import { startHaproxy } from "./haproxy.ts";
import { until } from "./scratch.ts";

export interface Replica {
  /** As HAProxy calls it. */
  readonly name: string;
  readonly url: string;
  readonly folders: GatewayFolders;
  serve: RunningCommand;
  /** On the same port, once it has ended. */
  restart(): Promise<void>;
}

interface ReplicaOptions {
  readonly document: string;
  readonly flags?: readonly string[];
  readonly port?: number | undefined;
  readonly environment?: Readonly<Record<string, string>>;
  /** What its cache has before it starts. */
  readonly models?: readonly string[];
}

/** Resolves when it is ready. `at`: 0 for gateway-1. */
export async function startReplica(
  t: Ending,
  at: number,
  { document, flags = [], port = 0, environment = {}, models = [] }: ReplicaOptions,
): Promise<Replica> {
  const folders = await makeFolders(t);
  for (const repo of models) await cacheTalker(folders, repo);
  await folders.writeConfig(document);
  const own = String(port || (await freePort()));
  // Longer than HAProxy's checks take to see it.
  const usual = ["--port", own, "--writes", "file", "--stop-delay", "4", "--stop-grace", "60", "--log-level", "error"];
  const serve = async (): Promise<RunningCommand> => {
    const running = await startCommand(t, folders, ["serve", ...usual, ...flags], environment);
    await running.output(/Ready\./);
    return running;
  };
  const replica: Replica = {
    name: `gateway-${at + 1}`,
    url: `http://127.0.0.1:${own}`,
    folders,
    serve: await serve(),
    restart: async () => {
      replica.serve = await serve();
    },
  };
  return replica;
}

/** Starts HAProxy on a free port, with the shipped file and the addresses of these gateways; answers with its address. */
export async function balance(t: Ending, replicas: readonly Replica[]): Promise<string> {
  const port = await freePort();
  let text = await readFile(join(packageRoot, "docs", "deploy", "haproxy.cfg"), "utf8");
  text = text.replace("bind :8480", `bind 127.0.0.1:${port}`);
  for (const { name, url } of replicas)
    text = text.replace(new RegExp(`server ${name} \\S+`), `server ${name} ${new URL(url).host}`);
  const path = join(replicas[0]?.folders.root ?? "", "haproxy.cfg");
  await writeFile(path, text);
  await startHaproxy(t, path);
  return `http://127.0.0.1:${port}`;
}

/** Resolves when each of them is sent requests. */
export async function seesAll(url: string, replicas: readonly Replica[]): Promise<void> {
  const seen = new Set<string | null>();
  await until("all replicas get requests", async () => {
    // HAProxy itself may not listen yet.
    const response = await fetch(`${url}/livez`).catch(() => null);
    seen.add(response?.headers.get("x-gateway") ?? null);
    return replicas.every(({ name }) => seen.has(name));
  });
}

/** The hashes of their documents. */
export async function documentHashes(replicas: readonly Replica[]): Promise<ReadonlySet<string | null>> {
  return new Set(
    await Promise.all(replicas.map(async ({ url }) => (await fetch(`${url}/readyz`)).headers.get("x-document-hash"))),
  );
}
