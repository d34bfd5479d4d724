// The engines' output, wired: into the gateway's own log where that is asked for everything, and into files by model.
import { join } from "node:path";
import {
  createEngineLogs,
  type EngineLogs,
  type EngineOutput,
  type LineOwner,
} from "../engines/process/engine-logs.ts";
import { createLogFiles, type LogFiles } from "../engines/process/log-files.ts";
import type { Settings } from "../settings/settings.ts";
import type { Base } from "./events.ts";

/** Of one file; each model has two of them. */
const mostBytes = 1 << 20;

export function engineLogFiles({ stateDir }: Pick<Settings, "stateDir">): LogFiles {
  return createLogFiles(join(stateDir, "logs"), mostBytes);
}

export function createLogs({ settings, warn }: Base) {
  const files = engineLogFiles(settings);
  const logs = createEngineLogs({ files, now: Date.now, warn });
  const { hubToken, hubMirrorKey, licenseKey } = settings;
  for (const secret of [hubToken, hubMirrorKey, licenseKey]) if (secret) logs.hide(secret);
  // Without them the gateway works as well.
  const open = (): Promise<void> =>
    files.open().catch((error: unknown) => warn("the engines' output is not kept", { error: String(error) }));
  return { ...logs, open };
}

export function outputOf(
  { logger, logs }: Pick<Base, "logger"> & { readonly logs: EngineLogs },
  engine: string,
  ownerOf: LineOwner,
): EngineOutput {
  const keep = logs.outputOf(ownerOf);
  return (text, from) => {
    logger.trace({ engine }, text.trimEnd());
    keep(text, from);
  };
}
