// `export` and `reset`: the document that is in force as YAML, and the way back to the file.
import type { DocumentInput } from "../client/index.ts";
import type { Json } from "../core/json.ts";
import { redactValue } from "../core/redact.ts";
import { renderDocument } from "../desired/render.ts";
import type { CommandLine } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";
import { printJson, valueText } from "./text.ts";

export async function exportCommand({ settings, json }: CommandLine): Promise<number> {
  const without = async (): Promise<DocumentInput> => (await import("./offline.ts")).offlineDocument(settings);
  const document = await withGateway({ settings, without }, async (client) => (await client.desired.get()).document);
  if (json) return printJson(document);
  process.stdout.write(renderDocument(document));
  return 0;
}

/** Waits until it is in force. */
export async function resetCommand({ settings, operands, json, force }: CommandLine): Promise<number> {
  return withGateway({ settings, change: { force } }, async (client) => {
    const { differsFromFile, etag } = await client.desired.get();
    const fields = operands.length === 0 ? undefined : operands;
    // What is printed is what was reset: a change in between is refused.
    const after = await client.desired.reset(fields, { etag, wait: true });
    if (json) return printJson(after);
    const left = new Map(after.differsFromFile.map(({ path, desired }) => [path, JSON.stringify(desired)]));
    const gone = differsFromFile.filter(({ path, desired }) => left.get(path) !== JSON.stringify(desired));
    if (gone.length === 0) console.log("The document is as the file has it.");
    for (const { path, desired, file, setBy } of gone) {
      const name = path.split(".").at(-1) ?? "";
      const [from, to] = [desired, file].map((value) => valueText(redactValue(value as Json, name)));
      console.log(`${path}: ${from} → ${to} (was set by ${setBy})`);
    }
    return after.converged === false ? 1 : 0;
  });
}
