// Runs a ggml-rpc-server in the foreground and restarts it when it dies, which it does (SIGPIPE) when a waiting client is killed.
import { setTimeout as delay } from "node:timers/promises";
import { restartAfterCrash } from "../core/backoff.ts";
import { GatewayError } from "../core/errors.ts";
import { steadyNow } from "../core/steady.ts";
import { engineEnvironment } from "../engines/process/engine-environment.ts";
import { markerName, markerValue } from "../engines/process/leftovers.ts";
import { type ProcessExit, startProcess, supervise } from "../engines/process/managed-process.ts";

export interface RpcWorkerOptions {
  readonly binary: string;
  /** On loopback. */
  readonly port: number;
  /** null: as many as the engine thinks fit. */
  readonly threads: number | null;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly workingDir: string;
  /** Tells its processes from all others, see leftovers. */
  readonly owner: string;
  readonly stopGraceMs: number;
  readonly onOutput: (text: string) => void;
  readonly onStart: (pid: number) => void;
  /** It ended by itself; `againAt` (ms) is the time of its restart. */
  readonly onExit: (exit: ProcessExit, againAt: number) => void;
}

/** One that ends so soon at its first start cannot work: its port is taken, or its files are incomplete. */
const firstBreathMs = 1_000;

/** Resolves when the signal aborts and the process has ended. Errors: `engine_failed` where it cannot run, `engine_missing`. */
export async function runRpcWorker(options: RpcWorkerOptions, signal: AbortSignal): Promise<void> {
  const args = ["-H", "127.0.0.1", "-p", String(options.port)];
  if (options.threads !== null) args.push("-t", String(options.threads));
  const crashes: number[] = [];
  for (let isFirst = true; !signal.aborted; isFirst = false) {
    const worker = await startProcess({
      path: options.binary,
      args,
      environment: engineEnvironment(options.environment, {
        GGML_NO_BACKTRACE: "1",
        [markerName]: markerValue(options.owner),
      }),
      workingDir: options.workingDir,
      onOutput: options.onOutput,
    });
    options.onStart(worker.pid);
    const exit = await supervise(worker, signal, options.stopGraceMs);
    if (signal.aborted) return;
    const now = steadyNow();
    if (isFirst && now - worker.startedAt < firstBreathMs && exit.signal === null)
      throw new GatewayError("engine_failed", `ggml-rpc-server ended at once: ${worker.lastWords()}`);
    crashes.push(now);
    if (crashes.length > 20) crashes.shift();
    const againAt = Math.max(now, restartAfterCrash(crashes, now));
    options.onExit(exit, againAt);
    await delay(againAt - now, undefined, { signal }).catch(() => undefined);
  }
}
