// Owns running the tools of an installation (apt-get, dpkg-deb, tar, patchelf) without blocking the event loop.
// A tool runs in a process group of its own, so that cancelling also ends what it started.

import { type ChildProcess, spawn } from "node:child_process";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { GatewayError } from "../../core/errors.ts";
import { noteGroup } from "../process/living.ts";

export interface RunOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly cwd?: string;
  /** Gives the tool a file descriptor 3 and receives each line written to it. */
  readonly onStatus?: (line: string) => void;
  /** Ends the tool after this many milliseconds, as a failure. */
  readonly timeoutMs?: number;
}

const graceMs = 3000;
const tailLines = 8;
/** A listing of 200 packages is 40 kB; more than this is a tool gone wrong. */
const outputLimit = 8 * 1024 * 1024;

/** Runs a tool to its end and gives its stdout. Throws `engine_failed` with its last lines, or `cancelled`. */
export async function runTool(command: string, args: readonly string[], options: RunOptions): Promise<string> {
  throwIfCancelled(options.signal);
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: toolEnvironment(options.environment),
    stdio: ["ignore", "pipe", "pipe", ...(options.onStatus === undefined ? [] : (["pipe"] as const))],
    detached: process.platform !== "win32",
    windowsHide: true,
  });
  const stdout = collect(child.stdio[1] as Readable);
  const stderr = collect(child.stdio[2] as Readable);
  if (options.onStatus !== undefined) {
    createInterface({ input: child.stdio[3] as Readable }).on("line", options.onStatus);
  }
  const isGone = child.pid === undefined ? () => undefined : noteGroup(child.pid);
  const ended = await waitForEnd(child, options).finally(isGone);
  throwIfCancelled(options.signal);
  const tool = command.split(/[\\/]/).at(-1) ?? command;
  if (ended.error !== undefined) {
    throw new GatewayError("engine_failed", `${tool} could not be started: ${ended.error.message}`, {
      cause: ended.error,
    });
  }
  if (ended.code !== 0) {
    const words = lastLines(`${stdout()}\n${stderr()}`);
    const how = ended.timedOut ? `took more than ${options.timeoutMs} ms` : `ended with ${ended.code ?? ended.signal}`;
    throw new GatewayError("engine_failed", `${tool} ${how}${words === "" ? "" : `: ${words}`}`);
  }
  return stdout();
}

/** Throws `cancelled` once the signal is aborted. */
export function throwIfCancelled(signal: AbortSignal): void {
  if (signal.aborted) throw new GatewayError("cancelled", "the installation was cancelled", { cause: signal.reason });
}

interface End {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly error?: Error;
  readonly timedOut: boolean;
}

function waitForEnd(child: ChildProcess, options: RunOptions): Promise<End> {
  return new Promise((resolve) => {
    let timedOut = false;
    let hardStop: NodeJS.Timeout | undefined;
    function stop(): void {
      killGroup(child, "SIGTERM");
      hardStop ??= setTimeout(() => killGroup(child, "SIGKILL"), graceMs);
    }
    const limit =
      options.timeoutMs === undefined
        ? undefined
        : setTimeout(() => {
            timedOut = true;
            stop();
          }, options.timeoutMs);
    function settle(end: End): void {
      clearTimeout(limit);
      clearTimeout(hardStop);
      options.signal.removeEventListener("abort", stop);
      resolve(end);
    }
    options.signal.addEventListener("abort", stop, { once: true });
    child.once("error", (error) => settle({ code: null, signal: null, error, timedOut }));
    child.once("close", (code, signal) => settle({ code, signal, timedOut }));
  });
}

function killGroup(child: ChildProcess, signal: NodeJS.Signals): void {
  if (child.pid === undefined) return;
  try {
    if (process.platform === "win32") child.kill(signal);
    else process.kill(-child.pid, signal);
  } catch {
    // ESRCH: the group ended by itself in the meantime.
  }
}

function collect(stream: Readable): () => string {
  const chunks: Buffer[] = [];
  let size = 0;
  stream.on("data", (chunk: Buffer) => {
    chunks.push(chunk);
    size += chunk.length;
    while (size > outputLimit) size -= chunks.shift()?.length ?? size;
  });
  return () => Buffer.concat(chunks).toString("utf8");
}

/** The last lines of a tool's output on one line, without credentials that a mirror's address may carry. */
function lastLines(output: string): string {
  return output
    .split(/[\r\n]+/)
    .map((line) => line.trim())
    .filter((line) => line !== "")
    .slice(-tailLines)
    .join(" | ")
    .replaceAll(/\/\/[^/@\s]+@/g, "//");
}

/** Tools get what they need to run and to reach the network (npm: where its registry is), and none of the gateway's tokens and keys. */
function toolEnvironment(environment: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const wanted =
    /^(path|home|tmpdir|temp|tmp|systemroot|windir|comspec|pathext|(https?|ftp|all|no)_proxy|npm_config_registry)$/i;
  const kept: Record<string, string> = { LC_ALL: "C.UTF-8", DEBIAN_FRONTEND: "noninteractive" };
  for (const [key, value] of Object.entries(environment)) {
    if (value !== undefined && wanted.test(key)) kept[key] = value;
  }
  return kept;
}
