// `rm ID`: deletes a model's files, after a question on the terminal.
import { type GatewayClient, GatewayClientError } from "../client/index.ts";
import { GatewayError } from "../core/errors.ts";
import type { OwnCommand } from "../core/own-command.ts";
import type { CommandLine } from "../settings/settings.ts";
import { isConfirmed } from "./ask.ts";
import { withGateway } from "./connect.ts";
import { bytesText, printJson } from "./text.ts";

/** After so many ms the reason for the delay is printed. */
const patienceMs = 2_000;

/** Exit code 2: not confirmed. */
export async function rmCommand({ settings, operands, yes, force, json }: CommandLine): Promise<number> {
  const [id = ""] = operands;
  return withGateway({ settings, change: { force } }, async (client) => {
    const unpulled = await unpulledName(client, id);
    if (!yes && !(await mayDelete(id, settings.command))) return 2;
    if (unpulled !== null) {
      await client.desired.patch({ models: { [unpulled]: null } }, { wait: true });
      console.log(`${id} is removed from the document and its pull cancelled; no file was present yet.`);
      return 0;
    }
    // The removal waits for responses in flight, which is not visible here.
    const waiting = setTimeout(() => console.error("Waiting for responses that use it."), patienceMs);
    const removed = await client.remove(id).finally(() => clearTimeout(waiting));
    if (json) return printJson(removed);
    console.log(`Removed ${removed.model}: ${bytesText(removed.freed_bytes)} freed.`);
    return 0;
  });
}

/** Of a model without files, its name in the document; null where it has files. Errors: `invalid_request` where there is neither. */
async function unpulledName(client: GatewayClient, id: string): Promise<string | null> {
  try {
    await client.remove(id, { dryRun: true });
    return null;
  } catch (error) {
    if (!(error instanceof GatewayClientError) || error.status !== 404) throw error;
    const { document } = await client.desired.get();
    const names = (document.models ?? []).map((model) => (typeof model === "string" ? model : model.id));
    const named = names.find((name) => name.toLowerCase() === id.toLowerCase());
    // The hint of `model_not_found` is about getting a model: no help to a person who deletes one.
    if (named === undefined) throw new GatewayError("invalid_request", error.message, { cause: error });
    return named;
  }
}

async function mayDelete(id: string, command: OwnCommand): Promise<boolean> {
  const answer = await isConfirmed(`Delete every file of ${id}, and remove it from the document?`);
  if (answer === null) console.error(`No terminal to confirm on: \`${command("rm", id, "--yes")}\` deletes it.`);
  return answer === true;
}
