// What a llama-server says of itself: its version, and the devices that it was built for and finds.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { engineEnvironment } from "../process/engine-environment.ts";

export interface EngineDescription {
  readonly version: string;
  /** `CUDA0: NVIDIA … (24576 MiB, 23000 MiB free)`; none: the processor. */
  readonly devices: readonly string[];
}

const withinMs = 10_000;

/** Throws what the process failed with. */
export async function describeEngine(
  path: string,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<EngineDescription> {
  const env = engineEnvironment(environment, { GGML_NO_BACKTRACE: "1" });
  const run = promisify(execFile);
  const options = { env, timeout: withinMs };
  const [version, devices] = await Promise.all([
    run(path, ["--version"], options),
    run(path, ["--list-devices"], options),
  ]);
  const listed = devices.stdout.slice(devices.stdout.indexOf("Available devices:"));
  return {
    version: /version: (.+)/.exec(version.stdout + version.stderr)?.[1]?.trim() ?? "of unknown version",
    devices: [...listed.matchAll(/^ +(\S+: .+)$/gm)].map(([, device = ""]) => device),
  };
}
