// Runs llama-fit-params, which asks the engine's own allocator without allocating what a model would take.
import { stat } from "node:fs/promises";
import { GatewayError } from "../../core/errors.ts";
import { toolBeside } from "../install/locate.ts";
import { engineEnvironment } from "../process/engine-environment.ts";
import { markerName, markerValue } from "../process/leftovers.ts";
import { exitText, startProcess, supervise } from "../process/managed-process.ts";

export interface FitTool {
  /** Absolute. */
  readonly path: string;
  /** Tells its build from the next. */
  readonly build: string;
}

/** It reads the head of a file: 35 ms, more on a disk that sleeps. */
const timeoutMs = 30_000;
const graceMs = 1_000;
/** Characters of output; it prints some lines. */
const mostOutput = 64 * 1024;
const shownLines = 2;

/** The one beside this llama-server; null where there is none. */
export async function findFitTool(server: string): Promise<FitTool | null> {
  const path = await toolBeside(server, "llama-fit-params");
  const entry = path === null ? null : await stat(path).catch(() => null);
  return path === null || entry === null ? null : { path, build: `${entry.mtimeMs}:${entry.size}` };
}

/** What it prints. Errors: `engine_failed` with its last lines, as for settings that the model cannot take; `cancelled`. */
export async function runFitTool(
  { path }: FitTool,
  args: readonly string[],
  options: {
    readonly stateDir: string;
    readonly environment: Readonly<Record<string, string | undefined>>;
    readonly signal: AbortSignal;
  },
): Promise<string> {
  let output = "";
  const process = await startProcess({
    path,
    args,
    environment: engineEnvironment(options.environment, {
      // A setting that a model cannot take aborts it, and a debugger would print its stack for 4 s.
      GGML_NO_BACKTRACE: "1",
      [markerName]: markerValue(options.stateDir),
    }),
    workingDir: options.stateDir,
    onOutput: (text, from) => {
      if (from === "stdout") output = (output + text).slice(-mostOutput);
    },
  });
  const limit = AbortSignal.any([options.signal, AbortSignal.timeout(timeoutMs)]);
  const exit = await supervise(process, limit, graceMs);
  if (options.signal.aborted) throw new GatewayError("cancelled", "the estimate was cancelled");
  if (exit.code === 0) return output;
  const how = limit.aborted ? `it took more than ${timeoutMs} ms` : exitText(exit);
  const words = process.lastWords().split("\n").slice(-shownLines).join(" | ");
  throw new GatewayError("engine_failed", `llama-fit-params: ${how}: ${words}`);
}
