// `rm ID`: deletes a model's files, after a question to whoever sits at the terminal.
import { createInterface } from "node:readline/promises";
import { type DiskBody, type GatewayClient, GatewayClientError, type Removed } from "../client/index.ts";
import { GatewayError } from "../core/errors.ts";
import type { OwnCommand } from "../core/own-command.ts";
import type { CommandLine } from "../settings/settings.ts";
import { bytesText } from "./amounts.ts";
import { withGateway } from "./connect.ts";

/** After so long, in ms, a word on why it takes long. */
const patienceMs = 2_000;

/** Exit code 2: not done, as nobody confirmed it. */
export async function rmCommand({ settings, operands, yes, force, json }: CommandLine): Promise<number> {
  const [id, ...rest] = operands;
  if (id === undefined || rest.length > 0)
    throw new GatewayError("invalid_request", "use `model-gateway rm ID [--yes]`");
  return withGateway({ settings, change: { force } }, async (client) => {
    if (!yes) {
      await requireKnown(client, id);
      if (!(await isConfirmed(id, settings.command))) return 2;
    }
    // Links and blobs are counted in the answer: a person has files in mind. What cannot be told holds up no removal.
    const models = json
      ? []
      : await client.disk.report().then(
          (report) => report.models,
          () => [],
        );
    // Its answers in flight are waited for, which nobody sees from here.
    const waiting = setTimeout(() => console.error("Waiting for what uses it to be through."), patienceMs);
    const removed = await removeOrGiveUp(client, id).finally(() => clearTimeout(waiting));
    if (removed === null) {
      console.log(`${id} is out of the document; nothing of it was here yet, and its pull is given up.`);
      return 0;
    }
    const before = models.find((model) => model.id === removed.model);
    if (json) console.log(JSON.stringify(removed, null, 2));
    else console.log(`Removed ${removed.model}: ${whatWent(before, removed.freed_bytes)}.`);
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

/** The hint of `model_not_found` tells how to get a model: no help to a person who deletes one. */
function notHere(error: GatewayClientError): GatewayError {
  return new GatewayError("invalid_request", error.message, { cause: error });
}

async function nameInDocument(client: GatewayClient, id: string): Promise<string | undefined> {
  const { document } = await client.desired.get();
  const names = (document.models ?? []).map((model) => (typeof model === "string" ? model : model.id));
  return names.find((name) => name.toLowerCase() === id.toLowerCase());
}

/** null: there was nothing of it to delete, and the document names it no more. */
async function removeOrGiveUp(client: GatewayClient, id: string): Promise<Removed | null> {
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

/** What something else links stays: then the number of files would mislead. */
function whatWent(model: DiskBody["models"][number] | undefined, freedBytes: number): string {
  const freed = `${bytesText(freedBytes)} freed`;
  if (!model) return freed;
  if (model.sharedBytes > 0) return `${freed}, ${bytesText(model.sharedBytes)} stay, as others share them`;
  return `${model.files} ${model.files === 1 ? "file" : "files"}, ${freed}`;
}

async function isConfirmed(id: string, command: OwnCommand): Promise<boolean> {
  if (!process.stdin.isTTY) {
    console.error(`Nobody can be asked here: \`${command("rm", id, "--yes")}\` deletes it.`);
    return false;
  }
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question(`Delete every file of ${id}, and take it out of the document? [y/N] `);
    return /^y(?:es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}
