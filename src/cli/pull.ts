// `pull ID`: has the running gateway pull a model, and shows progress. The pull continues without this process: a closed terminal
// must not cost what was downloaded.
import type { GatewayClient } from "../client/index.ts";
import type { CommandLine } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";
import { type TransferStep, type TransferView, transferProgress } from "./progress.ts";

/** As shells have it for a command that Ctrl+C ended. */
const interrupted = 130;

export async function pullCommand({ settings, force, operands }: CommandLine): Promise<number> {
  const [id = ""] = operands;
  const leaving = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => leaving.abort());
  const view = transferProgress(id, process.stderr);
  try {
    await withGateway({ settings, change: { force } }, (client) => follow(client, id, leaving.signal, view));
    console.log(`${id} is present.`);
    return 0;
  } catch (error) {
    if (!leaving.signal.aborted) throw error;
    console.error(`Left. The pull continues; \`${settings.command("rm", id)}\` cancels it.`);
    return interrupted;
  }
}

/** Records of the pull have one file at a time; events have the whole and its rate. */
async function follow(client: GatewayClient, id: string, signal: AbortSignal, view: TransferView): Promise<void> {
  const over = new AbortController();
  const digests = new Set<string>();
  let hasEvents = true;
  const watching = watch(client, AbortSignal.any([signal, over.signal]), digests, view).catch(() => {
    // Events only add detail: the pull decides the outcome.
    hasEvents = false;
  });
  try {
    await client.pull(id, {
      keep: true,
      signal,
      onProgress: ({ status, digest, completed = 0, total = 0 }) => {
        if (digest === undefined) return view.note(status ?? "");
        digests.add(plain(digest));
        if (!hasEvents) view.step({ completed, total });
      },
    });
  } finally {
    view.end();
    over.abort();
    await watching;
  }
}

/** `digests`: those of the files to show. */
async function watch(
  client: GatewayClient,
  signal: AbortSignal,
  digests: ReadonlySet<string>,
  view: TransferView,
): Promise<void> {
  for await (const { type, data } of client.events({ signal })) {
    const step = data as Partial<TransferStep> & { readonly digest?: string };
    const { digest = "", completed, total } = step;
    if (type !== "action.progress" || completed === undefined || total === undefined) continue;
    if (digests.has(plain(digest))) view.step({ ...step, completed, total });
  }
}

/** Without the name of the hash. */
function plain(digest: string): string {
  return digest.slice(digest.lastIndexOf(":") + 1);
}
