// One process of a speech engine that serves HTTP on a loopback port: started, probed, ended. The command and the readiness
// probe are arguments.
import { setTimeout as delay } from "node:timers/promises";
import { errorLine } from "../../core/error-line.ts";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { engineEnvironment } from "./engine-environment.ts";
import type { EngineOutput } from "./engine-logs.ts";
import { freePort } from "./free-port.ts";
import { markerName, markerValue } from "./leftovers.ts";
import { exitText, type ManagedProcess, startProcess } from "./managed-process.ts";
import { within } from "./within.ts";

/** What is started, and how. */
export interface ServerCommand {
  /** Absolute. */
  readonly path: string;
  args(port: number): readonly string[];
  readonly workingDir: string;
  /** Beside what every engine gets. */
  readonly environment?: Readonly<Record<string, string>>;
  /** Whether the server at `http://127.0.0.1:PORT` can be used; an error: no response. Probed as long as it runs. */
  isReady(origin: string, signal: AbortSignal): Promise<boolean>;
}

export interface ServerOptions {
  readonly stateDir: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly startTimeoutMs: number;
  readonly stopGraceMs: number;
  /** ms without a response after which a ready process counts as hanging and is ended. */
  readonly silenceLimitMs: number;
  readonly now: () => number;
  readonly onOutput: EngineOutput;
  /** It responds, or no longer responds. */
  readonly onChange: () => void;
  readonly warn: (message: string, fields: object) => void;
}

export interface ServerProcess {
  readonly pid: number;
  /** `http://127.0.0.1:PORT` */
  readonly origin: string;
  /** Resolves when it has ended, with the reason in one line; null: it was stopped. */
  readonly ended: Promise<string | null>;
  /** Since when (ms) it has not answered; null while it does. */
  silentSince(): number | null;
  /** TERM, and KILL after the grace. */
  stop(graceMs?: number): Promise<void>;
  /** KILL to one that hangs, with the reason of its end. */
  kill(why: string): Promise<void>;
  /** After a broken connection: resolves when the end of the process is detected, or it continues. */
  settle(): Promise<void>;
}

const probeAgainMs = 20;
/** Later probes come less often: on a busy machine an engine starts for seconds, and fifty probes a second keep a core from it. */
const probeAgainPart = 1 / 20;
const shortestPingMs = 100;
/** A connection breaks a moment before the end of the process is detected. */
const settleMs = 500;

/** Resolves when it is ready. Throws `engine_missing`, `engine_failed` with the line that says why, `shutting_down`. */
export async function startServer(
  what: string,
  command: ServerCommand,
  options: ServerOptions,
  signal: AbortSignal,
): Promise<ServerProcess> {
  const { stopGraceMs } = options;
  const port = await freePort();
  const origin = `http://127.0.0.1:${port}`;
  const process = await startProcess({
    path: command.path,
    args: command.args(port),
    environment: engineEnvironment(options.environment, {
      ...command.environment,
      [markerName]: markerValue(options.stateDir),
    }),
    workingDir: command.workingDir,
    onOutput: options.onOutput,
  });
  try {
    await untilReady(what, process, () => command.isReady(origin, signal), options, signal);
  } catch (error) {
    await process.stop(stopGraceMs);
    options.warn(`${what} did not start`, { output: process.lastWords() });
    throw error;
  }
  let silentSince: number | null = null;
  let isStopped = false;
  let reason: string | null = null;

  const kill = async (why: string): Promise<void> => {
    reason ??= why;
    await process.stop(0);
  };
  const ended = process.exited.then((exit) => {
    if (isStopped) return null;
    options.warn(`${what} ended`, { exit: exitText(exit), output: process.lastWords() });
    return reason ?? `${exitText(exit)}: ${errorLine(process.lastWords())}`;
  });

  /** A hanging process accepts connections and answers none. */
  async function ping(timeoutMs: number): Promise<void> {
    const askedAt = options.now();
    const answers = await command.isReady(origin, AbortSignal.timeout(timeoutMs)).then(
      () => true,
      () => false,
    );
    if (process.hasExited()) return;
    const wasSilent = silentSince !== null;
    silentSince = answers ? null : (silentSince ?? askedAt);
    if (wasSilent === answers) options.onChange();
    if (silentSince !== null && options.now() - silentSince >= options.silenceLimitMs)
      await kill(`it did not answer for ${Math.round(options.silenceLimitMs / 1000)} s and was ended`);
  }

  const pingMs = Math.max(shortestPingMs, options.silenceLimitMs / 4);
  const timer = setInterval(() => void ping(pingMs), pingMs);
  timer.unref();
  void process.exited.then(() => clearInterval(timer));
  return {
    pid: process.pid,
    origin,
    ended,
    silentSince: () => silentSince,
    stop: async (graceMs = stopGraceMs) => {
      isStopped = true;
      await process.stop(graceMs);
    },
    kill,
    settle: async () => {
      await within(ended, settleMs);
    },
  };
}

/** Whether the process ended instead of refusing: for the next request another one is started. */
export function hasEnded(error: unknown): boolean {
  const { code, cause } = toGatewayError(error);
  return code === "engine_failed" || (code === "upstream_failed" && cause !== undefined);
}

/** Errors of `isReady` mean: not yet. Throws `engine_failed` with `tail` of the last output, `shutting_down`. */
export async function untilReady(
  what: string,
  process: ManagedProcess,
  isReady: () => Promise<boolean>,
  { startTimeoutMs, now }: Pick<ServerOptions, "startTimeoutMs" | "now">,
  signal: AbortSignal,
  tail: (output: string) => string = errorLine,
): Promise<void> {
  const begun = now();
  const deadline = begun + startTimeoutMs;
  const failed = (how: string): GatewayError =>
    new GatewayError("engine_failed", `${what} ${how}: ${tail(process.lastWords())}`);
  for (;;) {
    const ready = await isReady().catch(() => false);
    // A response on the port of a process that has ended is from another program. Its exit code is no help: whisper-server
    // ends with 0 if ffmpeg is missing.
    if (process.hasExited()) throw failed("ended while starting");
    if (signal.aborted) throw new GatewayError("shutting_down", `stopped while ${what} was starting`);
    if (ready) return;
    if (now() > deadline) throw failed(`was not ready within ${startTimeoutMs} ms`);
    await Promise.race([process.exited, delay(Math.max(probeAgainMs, (now() - begun) * probeAgainPart))]);
  }
}
