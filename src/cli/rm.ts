// `rm ID`: deletes a model's files, after a question to whoever sits at the terminal.
import { createInterface } from "node:readline/promises";
import type { DiskBody } from "../client/index.ts";
import { GatewayError } from "../core/errors.ts";
import type { CommandLine } from "../settings.ts";
import { bytesText } from "./amounts.ts";
import { withGateway } from "./connect.ts";

/** Exit code 2: not done, as nobody confirmed it. */
export async function rmCommand({ settings, operands, yes, json }: CommandLine): Promise<number> {
  const [id, ...rest] = operands;
  if (id === undefined || rest.length > 0)
    throw new GatewayError("invalid_request", "use `model-gateway rm ID [--yes]`");
  return withGateway(settings, async (client) => {
    if (!yes && !(await isConfirmed(id))) return 2;
    // Links and blobs are counted in the answer: a person has files in mind. What cannot be told holds up no removal.
    const models = json
      ? []
      : await client.disk.report().then(
          (report) => report.models,
          () => [],
        );
    const removed = await client.remove(id);
    const before = models.find((model) => model.id === removed.model);
    if (json) console.log(JSON.stringify(removed, null, 2));
    else console.log(`Removed ${removed.model}: ${whatWent(before, removed.freed_bytes)}.`);
    return 0;
  });
}

/** What something else links stays: then the number of files would mislead. */
function whatWent(model: DiskBody["models"][number] | undefined, freedBytes: number): string {
  const freed = `${bytesText(freedBytes)} freed`;
  if (!model) return freed;
  if (model.sharedBytes > 0) return `${freed}, ${bytesText(model.sharedBytes)} stay, as others share them`;
  return `${model.files} ${model.files === 1 ? "file" : "files"}, ${freed}`;
}

async function isConfirmed(id: string): Promise<boolean> {
  if (!process.stdin.isTTY)
    throw new GatewayError("invalid_request", `nobody can be asked here: \`model-gateway rm ${id} --yes\` deletes it`);
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const answer = await terminal.question(`Delete every file of ${id}, and take it out of the document? [y/N] `);
    return /^y(?:es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}
