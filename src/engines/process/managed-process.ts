// One child process in a process group of its own: started, the tail of its output kept, ended for certain.
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { setPriority } from "node:os";
import { GatewayError, reasonOf, systemCode } from "../../core/errors.ts";
import { steadyNow } from "../../core/steady.ts";

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
  /** KILL to the process alone, at once: its children may have work, and detect it themselves. */
  kill(): Promise<ProcessExit>;
}

/**
 * All but tabs and ends of lines. Engines print what a model's file says of itself, and `logs` prints it on a terminal: an architecture
 * named with escape sequences cleared it and set its title.
 */
// oxlint-disable-next-line no-control-regex -- control characters are what is left out
const controls = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f]/g;
/** A router whose child cannot be started wrote 2.5 GB of log in six minutes: only the tail is kept. */
const tailBytes = 4096;

/** How long to wait for the last output of an ended process. */
const lastOutputMs = 200;

/** How long a process number is surely not reused. */
const groupIsOursMs = 10_000;

/** Four levels: other programs get 2.4 times its share of a core that both want. */
const niceness = 4;

/**
 * Beside an engine that keeps every core busy the gateway waits for one at each step of an answer. Its threads and children inherit it.
 * Linux weighs sessions before their processes where it groups them, and this one has a session of its own: the first byte of a stream
 * came 1.7 times as late as the router's own with two levels, 1.0 times with four, where the clients had another session.
 */
function goSecond(pid: number): void {
  try {
    setPriority(pid, niceness);
    writeFileSync(`/proc/${pid}/autogroup`, String(niceness));
  } catch {
    // Elsewhere it competes as any other.
  }
}

export async function startProcess(options: {
  readonly path: string;
  readonly args: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly workingDir: string;
  readonly onOutput?: (text: string, from: "stdout" | "stderr") => void;
}): Promise<ManagedProcess> {
  const child = spawn(options.path, options.args, {
    cwd: options.workingDir,
    env: options.environment,
    // A group of its own, so that a Ctrl-C in the terminal reaches the gateway alone, and the group can be ended whole.
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exited = exitOf(child);
  await once(child, "spawn").catch((error: unknown) => {
    throw startError(error, options.path);
  });
  const pid = child.pid as number;
  goSecond(pid);
  let tail = "";
  let endedAt: number | null = null;
  let stopping: Promise<ProcessExit> | null = null;
  living.add(pid);
  void exited.then(() => {
    endedAt = steadyNow();
    living.delete(pid);
  });
  for (const from of ["stdout", "stderr"] as const) {
    child[from].setEncoding("utf8").on("data", (output: string) => {
      const text = output.replaceAll(controls, "");
      tail = (tail + text).slice(-tailBytes);
      options.onOutput?.(text, from);
    });
  }

  async function end(graceMs: number): Promise<ProcessExit> {
    // Long after its end the number of its group may be reused.
    if (endedAt !== null && steadyNow() - endedAt > groupIsOursMs) return exited;
    if (endedAt === null) signalTo(pid, "SIGTERM");
    const timer = setTimeout(() => killGroup(pid), graceMs);
    const exit = await exited;
    clearTimeout(timer);
    // The rest of its group ends too.
    killGroup(pid);
    return exit;
  }

  return {
    pid,
    startedAt: steadyNow(),
    exited,
    hasExited: () => endedAt !== null,
    lastWords: () => tail.trim().split("\n").slice(-12).join("\n"),
    // Once: at a second TERM llama-server drops everything.
    stop: (graceMs) => (stopping ??= end(graceMs)),
    kill: () => {
      if (endedAt === null) signalTo(pid, "SIGKILL");
      return exited;
    },
  };
}

/** Waits for its end; when the signal aborts, it is stopped with the rest of its group. */
export async function supervise(process: ManagedProcess, signal: AbortSignal, graceMs: number): Promise<ProcessExit> {
  const stop = (): void => void process.stop(graceMs);
  signal.addEventListener("abort", stop, { once: true });
  if (signal.aborted) stop();
  const exit = await process.exited;
  signal.removeEventListener("abort", stop);
  return signal.aborted ? process.stop(graceMs) : exit;
}

/**
 * The end of the process itself, with its last output. Not of everything that inherited its output: a child that
 * outlives it keeps the pipes open, and the crash would go undetected.
 */
function exitOf(child: ChildProcess): Promise<ProcessExit> {
  return new Promise((resolve) => {
    child.once("exit", (code, signal) => {
      const late = setTimeout(() => resolve({ code, signal }), lastOutputMs);
      child.once("close", () => {
        clearTimeout(late);
        resolve({ code, signal });
      });
    });
  });
}

function startError(error: unknown, path: string): GatewayError {
  const why = reasonOf(error);
  // These are faults of the machine, not of the file: they pass.
  const isPassing = ["EAGAIN", "ENOMEM", "EMFILE", "ENFILE", "ETXTBSY"].includes(why);
  const code = isPassing ? "engine_failed" : "engine_missing";
  return new GatewayError(code, `${path} cannot be started (${why})`, { cause: error });
}

function signalTo(pid: number, name: NodeJS.Signals): void {
  try {
    process.kill(pid, name);
  } catch (error) {
    // Gone, or on macOS a zombie or a group of zombies.
    if (!["ESRCH", "EPERM"].includes(systemCode(error) ?? "")) throw error;
  }
}

/** How a process ended, as text. */
export function exitText({ code, signal }: ProcessExit): string {
  return signal === null ? `it exited with code ${code ?? "unknown"}` : `it was ended by ${signal}`;
}

/**
 * Leaders of running groups. Whatever ends this process, short of a KILL, they end with it: each is in a group of its own, so no
 * signal of the terminal reaches them. What a dead leader left behind ends when its input closes, which this process holds.
 */
const living = new Set<number>();

process.on("exit", () => {
  for (const pid of living) killGroup(pid);
});

/** KILL to a whole group; one that is gone is no error. */
function killGroup(pid: number): void {
  signalTo(process.platform === "win32" ? pid : -pid, "SIGKILL");
}
