// The engines' output of a gateway that does not run: what its files have.
import { engineLogFiles } from "../app/logs.ts";
import { GatewayError } from "../core/errors.ts";
import { createEngineLogs, logText } from "../engines/process/engine-logs.ts";
import type { Settings } from "../settings/settings.ts";

/** Errors: `invalid_request` for a model without output. */
export async function printKept(settings: Settings, model: string | undefined, tail: number): Promise<void> {
  const logs = createEngineLogs({ files: engineLogFiles(settings), now: Date.now, warn: () => undefined });
  const names = await logs.names();
  const log = model === undefined ? null : names.find((name) => name.toLowerCase() === model.toLowerCase());
  if (log === undefined)
    throw new GatewayError(
      "invalid_request",
      `no output of ${model} is kept; there is that of ${names.join(", ") || "none"}`,
    );
  process.stdout.write(logText(await logs.read(log, tail), tail, log === null));
}
