// Runs the tools of an installation (apt-get, dpkg-deb, tar, patchelf), each in a process group of its own.
import { basename } from "node:path";
import { GatewayError } from "../../core/errors.ts";
import { exitText, startProcess, supervise } from "../process/managed-process.ts";

export interface RunOptions {
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly signal: AbortSignal;
  readonly cwd?: string;
  readonly onOutput?: (text: string) => void;
  /** Ends the tool after this many milliseconds, as a failure. */
  readonly timeoutMs?: number;
}

const graceMs = 3000;

/** Runs a tool to its end and returns its stdout. Throws `engine_failed` with its last lines, `engine_missing`, `cancelled`. */
export async function runTool(command: string, args: readonly string[], options: RunOptions): Promise<string> {
  const { signal, timeoutMs } = options;
  throwIfCancelled(signal);
  let stdout = "";
  const tool = await startProcess({
    path: command,
    args,
    environment: toolEnvironment(options.environment),
    workingDir: options.cwd ?? ".",
    onOutput: (text, from) => {
      if (from === "stdout") stdout += text;
      options.onOutput?.(text);
    },
  });
  const limit = timeoutMs === undefined ? signal : AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
  const exit = await supervise(tool, limit, graceMs);
  throwIfCancelled(signal);
  if (exit.code === 0) return stdout;
  const how = limit.aborted ? `took more than ${timeoutMs} ms` : `failed: ${exitText(exit)}`;
  throw new GatewayError("engine_failed", `${basename(command)} ${how}: ${oneLine(tool.lastWords())}`);
}

/** Throws `cancelled` once the signal is aborted. */
export function throwIfCancelled(signal: AbortSignal): void {
  if (signal.aborted) throw new GatewayError("cancelled", "the installation was cancelled", { cause: signal.reason });
}

/** Without credentials that a mirror's address may carry. */
function oneLine(output: string): string {
  return output.replaceAll(/\s*[\r\n]+\s*/g, " | ").replaceAll(/\/\/[^/@\s]+@/g, "//");
}

/** What tools need to run and to reach the network (npm: its registry), and none of the gateway's tokens and keys. */
function toolEnvironment(environment: Readonly<Record<string, string | undefined>>): Record<string, string> {
  const passed =
    /^(path|home|tmpdir|temp|tmp|systemroot|windir|comspec|pathext|(https?|ftp|all|no)_proxy|npm_config_registry)$/i;
  const kept = Object.entries(environment).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && passed.test(entry[0]),
  );
  return { LC_ALL: "C.UTF-8", DEBIAN_FRONTEND: "noninteractive", ...Object.fromEntries(kept) };
}
