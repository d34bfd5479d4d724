// `search`, `files`: what the hub has.
import { groupFiles } from "../cache/layout/model-files.ts";
import { GatewayError } from "../core/errors.ts";
import { inferTag, isAuxiliary } from "../core/ids.ts";
import { wholeNumber } from "../settings/kinds.ts";
import type { CommandLine } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";
import { bytesText, printJson, printTable } from "./text.ts";

export async function searchCommand({ settings, operands, json, given }: CommandLine): Promise<number> {
  const limit = wholeNumber(given("limit") ?? "20", "--limit", 1, 1000);
  const query = operands.join(" ");
  const found = await withGateway({ settings }, (client) => client.searchHub(query, { limit }));
  if (json) return printJson(found);
  const rows = found.map(({ id, downloads, likes }) => [id, String(downloads), String(likes)]);
  if (rows.length === 0) console.log(`The hub has no GGUF models for ${JSON.stringify(query)}.`);
  else {
    printTable([["REPOSITORY", "DOWNLOADS", "LIKES"], ...rows]);
    console.log(`\n\`${settings.command("files", "OWNER/NAME")}\` lists what can be pulled of one.`);
  }
  return 0;
}

/** One line per model: its shards together. */
export async function filesCommand({ settings, operands, json }: CommandLine): Promise<number> {
  const [repo = ""] = operands;
  const files = await withGateway({ settings }, (client) => client.repoFiles(repo));
  if (json) return printJson(files);
  const models = groupFiles(files).filter(({ stem }) => !isAuxiliary(`${stem}.gguf`));
  if (models.length === 0) throw new GatewayError("invalid_request", `${repo} has no GGUF model: choose another`);
  const rows = models.map(({ stem, files: shards }) => [
    `${repo}:${inferTag(stem)}`,
    bytesText(shards.reduce((sum, { size }) => sum + size, 0)),
    shards.length > 1 ? `${shards.length} files` : (shards[0]?.path ?? stem),
  ]);
  printTable([["ID", "SIZE", "FILE"], ...rows]);
  console.log(`\n\`${settings.command("pull", "ID")}\` adds one to the document and downloads it.`);
  return 0;
}
