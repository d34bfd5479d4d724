// `logs [MODEL]`: the engines' output by model. Without a running gateway what its files have: the output before it ended.
import { engineLogFiles } from "../app/logs.ts";
import { GatewayError } from "../core/errors.ts";
import { createEngineLogs, logText } from "../engines/process/engine-logs.ts";
import { wholeNumber } from "../settings/kinds.ts";
import type { CommandLine, Settings } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";

export async function logsCommand({ operands, settings, flags, given }: CommandLine): Promise<number> {
  const [model] = operands;
  const tail = wholeNumber(given("tail") ?? "1000", "--tail", 0, 100_000);
  const isFollowing = flags.includes("follow");
  // Output to a pipe that is closed, as by `head`, is the end of it.
  process.stdout.on("error", () => process.exit(0));
  await withGateway(
    isFollowing ? { settings } : { settings, without: async () => printKept(settings, model, tail) },
    async (client) => {
      if (!isFollowing) process.stdout.write(await client.logs({ model, tail }));
      else for await (const line of client.followLogs({ model, tail })) console.log(line);
    },
  );
  return 0;
}

/** Errors: `invalid_request` for a model without output. */
async function printKept(settings: Settings, model: string | undefined, tail: number): Promise<void> {
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
