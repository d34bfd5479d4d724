// Runs a tool of the engine (llama-bench, llama-fit-params) to its end, as the engine itself is run.
import { basename } from "node:path";
import { GatewayError } from "../../core/errors.ts";
import { causeIn, isMemoryShortage } from "../../core/load-output.ts";
import { engineEnvironment } from "../process/engine-environment.ts";
import { markerName, markerValue } from "../process/leftovers.ts";
import { exitText, startProcess, supervise } from "../process/managed-process.ts";

export interface ToolPlace {
  /** Absolute; it works there. */
  readonly stateDir: string;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  /** It is ended then, as a failure; absent: it may take as long as it likes. */
  readonly timeoutMs?: number;
}

const graceMs = 1_000;
/** Of output; the longest is a help text of 30 kB. */
const mostOutput = 1 << 20;
const shownLines = 2;

/** Returns its stdout. Errors: `engine_refused` with its first complaint, `engine_failed` with its last lines, `engine_missing`, `cancelled`. */
export async function runEngineTool(path: string, args: readonly string[], place: ToolPlace): Promise<string> {
  const { stateDir, environment, signal, timeoutMs } = place;
  const name = basename(path);
  let output = "";
  const tool = await startProcess({
    path,
    args,
    environment: engineEnvironment(environment, {
      // A setting that a model cannot take aborts it, and a debugger would print its stack for 4 s.
      GGML_NO_BACKTRACE: "1",
      [markerName]: markerValue(stateDir),
    }),
    workingDir: stateDir,
    onOutput: (text, from) => {
      if (from === "stdout") output = (output + text).slice(-mostOutput);
    },
  });
  const limit = timeoutMs === undefined ? signal : AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const exit = await supervise(tool, limit, graceMs);
  if (signal.aborted) throw new GatewayError("cancelled", `${name} was cancelled`, { cause: signal.reason });
  if (exit.code === 0) return output;
  const lines = tool.lastWords().split("\n");
  const cause = limit.aborted || isMemoryShortage(lines) ? null : causeIn(lines);
  // Of an option that the tool lacks nothing follows for llama-server.
  if (cause !== null && !cause.startsWith("error: invalid argument")) throw new GatewayError("engine_refused", cause);
  const how = limit.aborted ? `took more than ${timeoutMs} ms` : exitText(exit);
  throw new GatewayError("engine_failed", `${name}: ${how}: ${lines.slice(-shownLines).join(" | ")}`);
}
