// The start of a router: arguments, readiness, errors.
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import type { ManagedProcess } from "../process/managed-process.ts";
import type { RouterClient } from "./router-client.ts";

/**
 * No context size here: it would override every preset. The gateway counts loaded models itself: the router takes a model
 * whose responses bypass it for idle and would evict it during a response.
 */
export function routerArguments(port: number, presetPath: string): string[] {
  return [
    "--host",
    "127.0.0.1",
    "--port",
    String(port),
    "--models-preset",
    presetPath,
    "--models-max",
    "0",
    "--no-models-autoload",
    "--no-webui",
  ];
}

/** Resolves when it responds. Errors: `engine_failed` with its last output, `shutting_down`. */
export async function untilHealthy(
  { process, client }: { readonly process: ManagedProcess; readonly client: RouterClient },
  options: { readonly startTimeoutMs: number; readonly now: () => number; readonly signal: AbortSignal },
): Promise<void> {
  const { startTimeoutMs, now, signal } = options;
  const deadline = now() + startTimeoutMs;
  for (;;) {
    // A healthy response may come from another program on the port: only our router takes our key.
    const answers = (await client.healthy()) && (await client.models().catch(() => null)) !== null;
    if (process.hasExited())
      throw new GatewayError("engine_failed", `the router ended while starting: ${process.lastWords()}`);
    if (answers) return;
    if (signal.aborted) throw new GatewayError("shutting_down", "stopped while the router was starting");
    if (now() > deadline) {
      const words = process.lastWords();
      throw new GatewayError("engine_failed", `the router was not ready within ${startTimeoutMs} ms: ${words}`);
    }
    await Promise.race([process.exited, new Promise((resolve) => setTimeout(resolve, 15))]);
  }
}

/** Of a start that failed: another program took the port between its choice and its use. */
export function isPortTaken(error: unknown): boolean {
  return toGatewayError(error).code === "engine_failed" && /couldn't bind|address already in use/i.test(String(error));
}

/** The router's last errors, without output of its instances. */
export function ownWords(process: ManagedProcess): string {
  const lines = process
    .lastWords()
    .split("\n")
    .filter((line) => line.trim() !== "" && !/^\[\d+\] /.test(line) && !/^[\d.]+ I /.test(line));
  return lines.length > 0 ? `: ${lines.slice(-3).join("; ")}` : "";
}
