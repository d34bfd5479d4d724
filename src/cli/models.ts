// `models`: lists the contents of the model cache.
import type { DiskBody } from "../../schemas/disk.ts";
import { memoryText } from "../core/memory-text.ts";
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
    model.memory ? memoryText(model.memory.bytes) : "-",
    model.lastUsed?.slice(0, 16).replace("T", " ") ?? "never",
    notesOf(model).join(", "),
  ]);
  if (rows.length > 0) printTable([["MODEL", "SIZE", "MEMORY", "LAST USED", "NOTES"], ...rows]);
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
  const { partial, documentName, variants = [] } = model;
  const isAlso = documentName !== null && documentName.toLowerCase() !== model.id.toLowerCase();
  return [
    model.desired ? `in the document${isAlso ? ` as ${documentName}` : ""}` : "not in the document",
    ...(model.present ? [model.ours ? "of this gateway" : "of another program"] : []),
    ...(model.loaded ? ["loaded"] : []),
    ...(variants.length > 0 ? [`variants: ${variants.join(" ")}`] : []),
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
