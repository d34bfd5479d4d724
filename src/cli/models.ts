// `models` and `gc`: the contents of the model cache, and deletion of what nothing uses.
import type { DiskBody } from "../../schemas/disk.ts";
import type { Collected } from "../cache/report/garbage.ts";
import type { CommandLine, Settings } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";
import { bytesText, printJson, printTable } from "./text.ts";

export async function modelsCommand({ settings, json }: CommandLine): Promise<number> {
  const report = await withGateway<DiskBody>(
    { settings, without: async () => (await import("./offline.ts")).offlineReport(settings) },
    (client) => client.disk.report(),
  );
  if (json) return printJson(report);
  printReport(report, settings);
  return 0;
}

function printReport({ models, speech, totals, unreadable }: DiskBody, { command }: Settings): void {
  const rows = models.map((model) => [
    model.id,
    model.present ? bytesText(model.bytes) : "-",
    model.lastUsed?.slice(0, 16).replace("T", " ") ?? "never",
    notesOf(model).join(", "),
  ]);
  if (rows.length > 0) printTable([["MODEL", "SIZE", "LAST USED", "NOTES"], ...rows]);
  else console.log("No models.");
  const spoken = speech.map((each) => [
    each.name,
    each.present ? bytesText(each.bytes) : "-",
    speechNotesOf(each).join(", "),
  ]);
  if (spoken.length > 0) {
    console.log("");
    printTable([["SPEECH", "SIZE", "NOTES"], ...spoken]);
  }
  for (const repo of unreadable) console.log(`${repo}: its folder cannot be read`);
  const { bytes, freeBytes, staleBytes, orphanBytes, partialBytes, collectableBytes } = totals;
  const parts = [
    ...(staleBytes > 0 ? [`${bytesText(staleBytes)} in older revisions`] : []),
    ...(orphanBytes > 0 ? [`${bytesText(orphanBytes)} that nothing links`] : []),
    ...(partialBytes > 0 ? [`${bytesText(partialBytes)} of unfinished downloads`] : []),
  ];
  console.log(
    `\n${bytesText(bytes)} in the model cache${parts.length > 0 ? ` (${parts.join(", ")})` : ""}` +
      `${freeBytes === null ? "" : `, ${bytesText(freeBytes)} free`}.`,
  );
  if (collectableBytes > 0) console.log(`\`${command("gc")}\` would free ${bytesText(collectableBytes)}.`);
}

function notesOf(model: DiskBody["models"][number]): string[] {
  const { partial, documentName } = model;
  const isAlso = documentName !== null && documentName.toLowerCase() !== model.id.toLowerCase();
  return [
    model.desired ? `in the document${isAlso ? ` as ${documentName}` : ""}` : "not in the document",
    ...(model.present ? [model.ours ? "pulled by this gateway" : "of another program"] : []),
    ...(model.loaded ? ["loaded"] : []),
    ...(model.staleBytes > 0 ? [`${bytesText(model.staleBytes)} stale`] : []),
    ...(partial
      ? [`${bytesText(partial.bytes)}${partial.total === null ? "" : ` of ${bytesText(partial.total)}`} pulled so far`]
      : []),
  ];
}

function speechNotesOf(files: DiskBody["speech"][number]): string[] {
  const { kind, desired, present, ours, running, license } = files;
  return [
    kind === "synthesis" ? "voice" : "transcription model",
    desired ? "in the document" : "not in the document",
    ...(present ? [ours ? "pulled by this gateway" : "not pulled by this gateway"] : []),
    ...(running ? ["in use"] : []),
    ...(license === null ? [] : [`license: ${license}`]),
  ];
}

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
