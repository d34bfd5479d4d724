// `history`, `history N`, `rollback N`: the last generations of the document, and the way back to one.
import type { GenerationBody, HistoryBody } from "../client/index.ts";
import { GatewayError } from "../core/errors.ts";
import type { CommandLine } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";
import { elapsedText, printJson, printOutcomeOf, printTable, valueText } from "./text.ts";

export async function historyCommand({ settings, operands, json }: CommandLine): Promise<number> {
  const [which] = operands;
  return withGateway({ settings }, async (client) => {
    if (which === undefined) {
      const history = await client.history.list();
      return json ? printJson(history) : printHistory(history);
    }
    const generation = await client.history.get(generationIn(which));
    return json ? printJson(generation) : printGeneration(generation);
  });
}

/** Waits until it is in force. */
export async function rollbackCommand({ settings, operands, json, force }: CommandLine): Promise<number> {
  const wanted = generationIn(operands[0] ?? "");
  return withGateway({ settings, change: { force } }, async (client) => {
    const before = await client.desired.get();
    const after = await client.history.rollback(wanted, { wait: true });
    if (json) return printJson(after);
    if (after.generation === before.generation) console.log(`The document is that of generation ${wanted} already.`);
    else console.log(`Generation ${after.generation} has the document of generation ${wanted}.`);
    return printOutcomeOf(after);
  });
}

/** Errors: `invalid_request`. */
function generationIn(text: string): number {
  if (/^\d{1,15}$/.test(text)) return Number(text);
  throw new GatewayError("invalid_request", `${JSON.stringify(text)} is no generation: \`history\` lists them`);
}

/** Fields that a row names. */
const fieldsShown = 3;

function printHistory({ entries, drifts }: HistoryBody): number {
  if (entries.length === 0) console.log("Nothing has changed yet.");
  else {
    const rows = entries.map((entry) => [
      String(entry.generation),
      timeText(entry.at),
      whoText(entry, 7),
      outcomeText(entry),
      fieldsText(entry),
    ]);
    printTable([["GENERATION", "TIME", "BY", "OUTCOME", "CHANGED"], ...rows]);
  }
  if (drifts.length > 0) console.log("\nDrift:");
  for (const { at, mendedAt, what } of drifts) {
    const mended =
      mendedAt === null ? "not mended yet" : `mended after ${elapsedText(Date.parse(mendedAt) - Date.parse(at))}`;
    console.log(`${timeText(at)}  ${mended}`);
    for (const { message, reason } of what) console.log(`  ${message} (${reason})`);
  }
  return 0;
}

function printGeneration(generation: GenerationBody): number {
  const { at, file, changes, problem, removal } = generation;
  console.log(`Generation ${generation.generation}, ${timeText(at)}`);
  console.log(`  by       ${whoText(generation)}`);
  if (file?.sha256) console.log(`  file     sha256 ${file.sha256}`);
  if (file?.revision) console.log(`  revision ${file.revision}`);
  console.log(`  outcome  ${outcomeText(generation)}`);
  if (problem !== null) console.log(`  problem  ${problem}`);
  if (removal !== null) console.log(`  deletes  ${removal}`);
  for (const change of changes) {
    const { field, before, after } = change;
    if (!("before" in change)) console.log(`+ ${field}: ${valueText(after)}`);
    else if (!("after" in change)) console.log(`- ${field}: ${valueText(before)}`);
    else console.log(`~ ${field}: ${valueText(before)} → ${valueText(after)}`);
  }
  return 0;
}

type Entry = HistoryBody["entries"][number];

/** `digits`: of a revision that is a commit's hash. */
function whoText({ by, key, peer, client, file }: Omit<Entry, "title">, digits?: number): string {
  const name =
    file?.revision && (/^[0-9a-f]{40,64}$/.test(file.revision) ? file.revision.slice(0, digits) : file.revision);
  const revision = name ? `revision ${name}` : null;
  const parts = [key === null ? null : `key ${key}`, peer, client, revision].filter((part) => part !== null);
  return parts.length === 0 ? by : `${by} (${parts.join(", ")})`;
}

function outcomeText({ outcome, ms }: Pick<Entry, "outcome" | "ms">): string {
  return ms === null ? outcome : `${outcome} after ${elapsedText(ms)}`;
}

function fieldsText({ fields, removal }: Entry): string {
  const shown = fields.slice(0, fieldsShown).join(", ");
  const more = fields.length > fieldsShown ? ` and ${fields.length - fieldsShown} more` : "";
  return `${shown}${more}${removal === null ? "" : `${shown === "" ? "" : "; "}deletes ${removal}`}`;
}

/** To the second, in UTC: `2026-01-02 03:04:05Z`. */
function timeText(iso: string): string {
  return `${iso.slice(0, 19).replace("T", " ")}Z`;
}
