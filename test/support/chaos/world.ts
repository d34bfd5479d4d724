// The gateway under test as a process of its own, its folders, its hub, and the processes below it. Starts, asks and ends;
// judges nothing.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { findLeftovers } from "../../../src/engines/process/leftovers.ts";
import type { StatusReport } from "../../../src/status/report.ts";
import type { Ending } from "../clean-up.ts";
import { type RunningCommand, startCommand } from "../command.ts";
import { type GatewayFolders, makeFolders } from "../folders.ts";
import { type LoopbackHub, startLoopbackHub } from "../loopback-hub.ts";
import { until } from "../scratch.ts";
import type { Target } from "./ask.ts";
import { chaosBytes, chaosFile, repoOf } from "./models.ts";

export interface Reply {
  /** Null: there was no answer, as the gateway went away. */
  readonly status: number | null;
  readonly body: Record<string, unknown>;
}

export interface World {
  readonly folders: GatewayFolders;
  readonly hub: LoopbackHub;
  /** Bytes of the models' files, by name. */
  readonly sizes: ReadonlyMap<string, number>;
  /** Of the living gateway. */
  pid(): number;
  /** Counts the gateways that were started. */
  life(): number;
  /** Starts a gateway; resolves when it listens. */
  start(): Promise<void>;
  /** Ends the gateway and waits until it has ended; KILL ends it at once. Resolves with its exit code. */
  end(signal: "SIGKILL" | "SIGTERM"): Promise<number | null>;
  /** Where clients ask; while there is no gateway, waits for the next. */
  target(): Promise<Target>;
  /** Resolves when it makes sense to ask again: at once, unless that gateway is ending. */
  afterRefusal(target: Target): Promise<void>;
  call(method: "GET" | "POST" | "PATCH", path: string, body?: object, signal?: AbortSignal): Promise<Reply>;
  status(): Promise<StatusReport>;
  /** Engine processes of this state folder. */
  engines(): Promise<Engine[]>;
  /** The last of what the newest gateway has logged. */
  said(): Promise<string>;
}

export interface Engine {
  readonly pid: number;
  readonly parent: number;
  readonly args: readonly string[];
  /** Null: the router. */
  readonly model: string | null;
  /** LLAMA_API_KEY of its environment. */
  readonly key: string;
}

export async function createWorld(
  t: Ending,
  options: { readonly models: readonly string[]; readonly environment: Readonly<Record<string, string>> },
): Promise<World> {
  const folders = await makeFolders(t);
  const hub = await startLoopbackHub(t);
  const sizes = new Map<string, number>();
  for (const name of options.models) {
    const bytes = chaosBytes(name);
    sizes.set(name, bytes.length);
    hub.addRepo(repoOf(name), { files: { [`${name}-${chaosFile}`]: bytes } });
  }
  let running: { readonly process: RunningCommand; readonly target: Target } | null = null;
  let isEnding = false;
  let lives = 0;
  let last: RunningCommand | null = null;
  const waiting: (() => void)[] = [];

  async function start(): Promise<void> {
    const extra = { HF_ENDPOINT: hub.endpoint, GATEWAY_LOG_LEVEL: "warn", ...options.environment };
    const process = await startCommand(t, folders, ["serve"], extra);
    last = process;
    const [, origin = ""] = await process.output(/listens on (\S+);/);
    lives++;
    isEnding = false;
    running = { process, target: { origin, prefixes: { compat: "/beta/v1", native: "/alpha/api" }, headers: {} } };
    for (const wake of waiting.splice(0)) wake();
  }

  async function target(): Promise<Target> {
    while (!running) await new Promise<void>((resolve) => waiting.push(resolve));
    return running.target;
  }

  function alive(): NonNullable<typeof running> {
    if (!running) throw new Error("there is no gateway");
    return running;
  }

  async function call(method: string, path: string, body?: object, signal?: AbortSignal): Promise<Reply> {
    const { origin } = await target();
    try {
      const response = await fetch(origin + path, {
        method,
        // A connection that is used again may be one that a killed gateway had.
        headers: { connection: "close", ...(body ? { "content-type": "application/json" } : {}) },
        ...(body ? { body: JSON.stringify(body) } : {}),
        signal: AbortSignal.any([AbortSignal.timeout(600_000), ...(signal ? [signal] : [])]),
      });
      const text = await response.text();
      return { status: response.status, body: text.startsWith("{") ? lastRecord(text) : { text } };
    } catch (error) {
      if (error instanceof Error && error.name === "TimeoutError")
        throw new Error(`${method} ${path}: no answer`, { cause: error });
      return { status: null, body: {} };
    }
  }

  return {
    folders,
    hub,
    sizes,
    pid: () => alive().process.process.pid ?? 0,
    life: () => lives,
    start,
    end: async (signal) => {
      const { process } = alive();
      // Whoever is told to end may still answer for a while; whoever is killed may not.
      isEnding = true;
      if (signal === "SIGKILL") running = null;
      process.process.kill(signal);
      const { code } = await process.exited;
      running = null;
      return code;
    },
    target,
    afterRefusal: async (old) => {
      while (isEnding && (await target()) === old) await new Promise<void>((resolve) => waiting.push(resolve));
    },
    call,
    status: async () => (await call("GET", "/status")).body as unknown as StatusReport,
    engines: async () => {
      const pids = await findLeftovers(folders.stateDir);
      return (await Promise.all(pids.map(engineOf))).filter((engine) => engine !== null);
    },
    said: async () => (last ? (await last.said(/^[\s\S]*/))[0].slice(-3000) : ""),
  };
}

/** Of an answer of one record a line, the last one. */
function lastRecord(text: string): Record<string, unknown> {
  const line = text.trimEnd().split("\n").at(-1) ?? "{}";
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return JSON.parse(line) as Record<string, unknown>;
  }
}

async function engineOf(pid: number): Promise<Engine | null> {
  try {
    const args = (await readFile(join("/proc", String(pid), "cmdline"), "utf8")).split("\0");
    const environment = (await readFile(join("/proc", String(pid), "environ"), "utf8")).split("\0");
    const stat = await readFile(join("/proc", String(pid), "stat"), "utf8");
    const [state = "Z", parent = "0"] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    if (state === "Z") return null;
    const at = args.indexOf("--alias");
    return {
      pid,
      parent: Number(parent),
      args,
      model: at === -1 ? null : (args[at + 1] ?? null),
      key: environment.find((entry) => entry.startsWith("LLAMA_API_KEY="))?.slice("LLAMA_API_KEY=".length) ?? "",
    };
  } catch {
    // It has ended meanwhile.
    return null;
  }
}

/** The process of a model that the router has now; null while it has none. */
export async function processOf(world: World, model: string | null): Promise<Engine | null> {
  const engines = await world.engines();
  const router = engines.find((engine) => engine.model === null && engine.parent === world.pid());
  if (model === null) return router ?? null;
  return engines.find((engine) => engine.model === model && engine.parent === router?.pid) ?? null;
}

/** False: it has ended already. */
export function signalTo(pid: number, signal: "SIGKILL" | "SIGSTOP" | "SIGCONT"): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
}

export async function untilProcess(world: World, model: string | null): Promise<Engine> {
  return until(`a process of ${model ?? "the router"}`, () => processOf(world, model));
}
