// `gc`: lists what nothing in the model cache uses, and deletes it.
import type { Collected } from "../cache/report/garbage.ts";
import type { CommandLine, Settings } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";
import { bytesText, printJson } from "./text.ts";

/** Exit code 2: something would go. */
export async function gcCommand({ settings, json, yes, force }: CommandLine): Promise<number> {
  const dryRun = !yes;
  const result = await withGateway<Collection>(
    dryRun
      ? {
          settings,
          without: async () => ({ dryRun, ...(await (await import("./offline.ts")).offlineCollection(settings)) }),
        }
      : { settings, change: { force } },
    (client) => client.disk.collect({ dryRun }),
  );
  if (json) printJson(result);
  else printCollected(result, settings);
  return result.dryRun && result.items.length > 0 ? 2 : 0;
}

type Collection = Collected & { readonly dryRun: boolean };

function printCollected({ dryRun, items, skipped, freedBytes }: Collection, { command }: Settings): void {
  for (const { path, bytes, reason, message } of items)
    console.log(`- ${path}: ${message} (${reason}, ${bytesText(bytes)})`);
  for (const { repo, reason, message } of skipped) console.log(`  left in ${repo}: ${message} (${reason})`);
  if (items.length === 0) console.log(skipped.length > 0 ? "Nothing to delete now." : "Nothing to delete.");
  else if (!dryRun) console.log(`Deleted: ${bytesText(freedBytes)} freed.`);
  else {
    const bytes = items.reduce((sum, item) => sum + item.bytes, 0);
    console.log(`${bytesText(bytes)} would become free. \`${command("gc", "--yes")}\` deletes it.`);
  }
}
