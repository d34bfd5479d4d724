// `engine install`: puts an engine into the state folder.
import { join } from "node:path";
import { GatewayError } from "../core/errors.ts";
import { installEngine } from "../engines/install/install.ts";
import { installSherpa } from "../engines/install/sherpa.ts";
import type { CommandLine } from "../settings/settings.ts";
import { installProgress } from "./progress.ts";

export async function engineCommand({ operands, settings }: CommandLine): Promise<number> {
  const [name = "llama"] = operands;
  if (name !== "llama" && name !== "whisper" && name !== "sherpa")
    throw new GatewayError("invalid_request", `there is no engine ${name}: install llama, whisper or sherpa`);
  const stop = new AbortController();
  process.once("SIGINT", () => stop.abort());
  const options = {
    enginesDir: join(settings.stateDir, "engines"),
    environment: settings.environment,
    signal: stop.signal,
    onProgress: installProgress(name, process.stderr),
  };
  if (name === "sherpa") {
    const { version, packageDir } = await installSherpa(options);
    console.log(`${name} ${version} is in ${packageDir}`);
  } else {
    const { version, dir, how } = await installEngine(name, options);
    console.log(`${name} ${version} is in ${dir} (${how})`);
  }
  return 0;
}
