// One child process in a process group of its own: started, its output kept in part, ended for certain.
// Knows nothing of what the process does.
import { type ChildProcess, spawn } from "node:child_process";
import { GatewayError, systemCode } from "../core/errors.ts";

export interface ProcessExit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface ManagedProcess {
  readonly pid: number;
  readonly startedAt: number;
  /** Resolves once, when the process has ended. */
  readonly exited: Promise<ProcessExit>;
  hasExited(): boolean;
  /** The last lines of its output, at most {@link tailBytes}. */
  lastWords(): string;
  /** TERM to the process, after the grace KILL to its group; resolves when it has ended. */
  stop(graceMs: number): Promise<ProcessExit>;
}

/** A router whose child cannot be started wrote 2.5 GB of log in six minutes: only the tail is kept. */
const tailBytes = 4096;

export async function startProcess(options: {
  readonly path: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly workingDir: string;
  readonly onOutput?: (text: string) => void;
}): Promise<ManagedProcess> {
  const child = spawn(options.path, options.args, {
    cwd: options.workingDir,
    env: options.environment,
    // A group of its own, so that a Ctrl-C in the terminal reaches the gateway alone, and the group can be ended whole.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = new Promise<ProcessExit>((resolve) => {
    child.once("close", (code, signal) => resolve({ code, signal }));
  });
  await started(child, options.path);
  const pid = child.pid as number;
  let tail = "";
  let ended = false;
  void exited.then(() => {
    ended = true;
  });
  for (const stream of [child.stdout, child.stderr]) {
    stream?.setEncoding("utf8");
    stream?.on("data", (text: string) => {
      tail = (tail + text).slice(-tailBytes);
      options.onOutput?.(text);
    });
  }

  async function stop(graceMs: number): Promise<ProcessExit> {
    if (ended) return exited;
    signal(pid, "SIGTERM");
    const timer = setTimeout(() => signalGroup(pid, "SIGKILL"), graceMs);
    const exit = await exited;
    clearTimeout(timer);
    // What the leader left behind in its group goes too.
    signalGroup(pid, "SIGKILL");
    return exit;
  }

  return {
    pid,
    startedAt: Date.now(),
    exited,
    hasExited: () => ended,
    lastWords: () => tail.slice(-1500).trim().split("\n").slice(-8).join("\n"),
    stop,
  };
}

function started(child: ChildProcess, path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    child.once("spawn", resolve);
    child.once("error", (error) => {
      reject(new GatewayError("engine_missing", `${path} cannot be started (${systemCode(error) ?? error.message})`, { cause: error }));
    });
  });
}

function signal(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    if (systemCode(error) !== "ESRCH") throw error;
  }
}

/** Signals a whole process group; one that is gone is no error. */
export function signalGroup(pid: number, name: NodeJS.Signals): void {
  if (process.platform === "win32") return signal(pid, name);
  signal(-pid, name);
}
