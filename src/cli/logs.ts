// `logs [MODEL]`: the engines' output by model. Without a running gateway what its files have: the output before it ended.
import { wholeNumber } from "../settings/kinds.ts";
import type { CommandLine } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";

export async function logsCommand({ operands, settings, flags, given }: CommandLine): Promise<number> {
  const [model] = operands;
  const tail = wholeNumber(given("tail") ?? "1000", "--tail", 0, 100_000);
  const isFollowing = flags.includes("follow");
  // Output to a pipe that is closed, as by `head`, is the end of it.
  process.stdout.on("error", () => process.exit(0));
  await withGateway(
    isFollowing
      ? { settings }
      : { settings, without: async () => (await import("./kept-logs.ts")).printKept(settings, model, tail) },
    async (client) => {
      if (!isFollowing) process.stdout.write(await client.logs({ model, tail }));
      else for await (const line of client.followLogs({ model, tail })) console.log(line);
    },
  );
  return 0;
}
