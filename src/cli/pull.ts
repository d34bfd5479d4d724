// `pull ID`: has the running gateway pull a model, and shows progress. The pull continues without this process: a closed terminal
// must not cost what was downloaded.
import type { GatewayClient } from "../client/index.ts";
import type { CommandLine } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";
import { type TransferView, transferProgress } from "./progress.ts";

/** As shells have it for a command that Ctrl+C ended. */
const interrupted = 130;

export async function pullCommand(line: CommandLine): Promise<number> {
  const [id = ""] = line.operands;
  const code = await pullHere(line, id);
  if (code === 0) console.log(`${id} is present.`);
  return code;
}

/** Resolves with the exit code; 0: it is present. */
export async function pullHere({ settings, force }: CommandLine, id: string): Promise<number> {
  const leaving = new AbortController();
  const leave = (): void => leaving.abort();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, leave);
  const view = transferProgress(id, process.stderr);
  try {
    await withGateway({ settings, change: { force } }, (client) => follow(client, id, leaving.signal, view));
    return 0;
  } catch (error) {
    if (!leaving.signal.aborted) throw error;
    console.error(`Left. The pull continues; \`${settings.command("rm", id)}\` cancels it.`);
    return interrupted;
  } finally {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.off(signal, leave);
  }
}

async function follow(client: GatewayClient, id: string, signal: AbortSignal, view: TransferView): Promise<void> {
  /** The first record of each file, by its digest. */
  const begun = new Map<string, { readonly at: number; readonly completed: number }>();
  try {
    await client.pull(id, {
      keep: true,
      signal,
      onProgress: ({ status, digest, completed = 0, total = 0 }) => {
        if (digest === undefined) return view.note(status ?? "");
        const at = performance.now();
        const first = begun.get(digest) ?? { at, completed };
        begun.set(digest, first);
        const bytesPerSecond = at > first.at ? (1000 * (completed - first.completed)) / (at - first.at) : 0;
        const secondsLeft = bytesPerSecond > 0 ? (total - completed) / bytesPerSecond : null;
        view.step({ completed, total, bytesPerSecond, secondsLeft });
      },
    });
  } finally {
    view.end();
  }
}
