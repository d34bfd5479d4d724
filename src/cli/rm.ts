// `rm ID`: deletes a model's files, after a question on the terminal.
import { createInterface } from "node:readline/promises";
import { type GatewayClient, GatewayClientError, type Removed } from "../client/index.ts";
import { GatewayError } from "../core/errors.ts";
import type { OwnCommand } from "../core/own-command.ts";
import type { CommandLine } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";
import { bytesText, printJson } from "./text.ts";

/** After so many ms the reason for the delay is printed. */
const patienceMs = 2_000;

/** Exit code 2: not confirmed. */
export async function rmCommand({ settings, operands, yes, force, json }: CommandLine): Promise<number> {
  const [id = ""] = operands;
  return withGateway({ settings, change: { force } }, async (client) => {
    if (!yes) {
      await requireKnown(client, id);
      if (!(await isConfirmed(id, settings.command))) return 2;
    }
    // The removal waits for responses in flight, which is not visible here.
    const waiting = setTimeout(() => console.error("Waiting for responses that use it."), patienceMs);
    const removed = await removeOrCancel(client, id).finally(() => clearTimeout(waiting));
    if (removed === null)
      console.log(`${id} is removed from the document and its pull cancelled; no file was present yet.`);
    else if (json) printJson(removed);
    else console.log(`Removed ${removed.model}: ${bytesText(removed.freed_bytes)} freed.`);
    return 0;
  });
}

/** Before the question: a name without a model needs none. Errors: `model_not_found`. */
async function requireKnown(client: GatewayClient, id: string): Promise<void> {
  try {
    await client.remove(id, { dryRun: true });
  } catch (error) {
    if (!isNotFound(error)) throw error;
    if ((await nameInDocument(client, id)) === undefined) throw notHere(error);
  }
}

function isNotFound(error: unknown): error is GatewayClientError {
  return error instanceof GatewayClientError && error.status === 404;
}

/** The hint of `model_not_found` is about getting a model: no help to a person who deletes one. */
function notHere(error: GatewayClientError): GatewayError {
  return new GatewayError("invalid_request", error.message, { cause: error });
}

async function nameInDocument(client: GatewayClient, id: string): Promise<string | undefined> {
  const { document } = await client.desired.get();
  const names = (document.models ?? []).map((model) => (typeof model === "string" ? model : model.id));
  return names.find((name) => name.toLowerCase() === id.toLowerCase());
}

/** null: no file was present, and the document no longer names it. */
async function removeOrCancel(client: GatewayClient, id: string): Promise<Removed | null> {
  try {
    return await client.remove(id);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    const named = await nameInDocument(client, id);
    if (named === undefined) throw notHere(error);
    await client.desired.patch({ models: { [named]: null } }, { wait: true });
    return null;
  }
}

async function isConfirmed(id: string, command: OwnCommand): Promise<boolean> {
  if (!process.stdin.isTTY) {
    console.error(`No terminal to confirm on: \`${command("rm", id, "--yes")}\` deletes it.`);
    return false;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question(`Delete every file of ${id}, and remove it from the document? [y/N] `);
    return /^y(?:es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}
