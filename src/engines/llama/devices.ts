// The devices that llama-server computes with, as it lists them.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { engineEnvironment } from "../process/engine-environment.ts";

export interface EngineDevice {
  readonly name: string;
  readonly totalBytes: number;
  readonly freeBytes: number;
}

const timeoutMs = 10_000;
const mebibyte = 1024 * 1024;

/** None of a machine that computes with its processor alone. Errors: those of a process that fails. */
export async function listDevices(
  server: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<readonly EngineDevice[]> {
  const { stdout } = await promisify(execFile)(server, ["--list-devices"], {
    env: engineEnvironment(environment, {}),
    timeout: timeoutMs,
  });
  return parseDevices(stdout);
}

/** Lines such as `  CUDA0: NVIDIA GeForce RTX 3090 (24135 MiB, 23000 MiB free)`. */
export function parseDevices(output: string): EngineDevice[] {
  const lines = output.matchAll(/^\s+(\S+): .*\((\d+) MiB, (\d+) MiB free\)\s*$/gm);
  return [...lines].map(([, name = "", total, free]) => ({
    name,
    totalBytes: Number(total) * mebibyte,
    freeBytes: Number(free) * mebibyte,
  }));
}
