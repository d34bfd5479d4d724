// `pull ID`: lets the running gateway pull a model, and shows progress. The pull continues without this process: a closed terminal
// must not cost what was downloaded.
import type { GatewayClient, GatewayEvent } from "../client/index.ts";
import type { CommandLine } from "../settings/settings.ts";
import { withGateway } from "./connect.ts";
import { type TransferStep, transferProgress } from "./progress.ts";

/** As shells have it for a command that Ctrl+C ended. */
const interrupted = 130;

export async function pullCommand({ settings, force, operands }: CommandLine): Promise<number> {
  const [id = ""] = operands;
  const leaving = new AbortController();
  const leave = (): void => leaving.abort();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, leave);
  const view = transferProgress(id, process.stderr);
  try {
    await withGateway({ settings, change: { force } }, (client) => follow(client, id, leaving.signal, view));
    console.log(`${id} is present.`);
    return 0;
  } catch (error) {
    view.end();
    if (!leaving.signal.aborted) throw error;
    console.error(`Left. The pull continues; \`${settings.command("rm", id)}\` cancels it.`);
    return interrupted;
  } finally {
    for (const signal of ["SIGINT", "SIGTERM"] as const) process.removeListener(signal, leave);
  }
}

type View = ReturnType<typeof transferProgress>;

/** Records of the pull have one file at a time; events have the whole and its rate. */
async function follow(client: GatewayClient, id: string, signal: AbortSignal, view: View): Promise<void> {
  const over = new AbortController();
  const digests = new Set<string>();
  let hasEvents = true;
  const watching = watch(client, AbortSignal.any([signal, over.signal]), (step) => {
    if (digests.has(step.digest)) view.step(step);
  }).catch(() => {
    // Events only add detail: the pull decides the outcome.
    hasEvents = false;
  });
  try {
    await client.pull(id, {
      keep: true,
      signal,
      onProgress: ({ status, digest, completed, total }) => {
        if (digest === undefined) return view.say(status ?? "");
        digests.add(plain(digest));
        if (!hasEvents)
          view.step({ completed: completed ?? 0, total: total ?? 0, bytesPerSecond: 0, secondsLeft: null });
      },
    });
    view.end();
  } finally {
    over.abort();
    await watching;
  }
}

async function watch(
  client: GatewayClient,
  signal: AbortSignal,
  tell: (step: TransferStep & { readonly digest: string }) => void,
): Promise<void> {
  for await (const event of client.events({ signal })) {
    const step = stepOf(event);
    if (step) tell(step);
  }
}

function stepOf({ type, data }: GatewayEvent): (TransferStep & { readonly digest: string }) | null {
  if (type !== "action.progress") return null;
  const { digest, completed, total, bytesPerSecond, secondsLeft } = data;
  if (typeof digest !== "string" || typeof completed !== "number" || typeof total !== "number") return null;
  return {
    digest: plain(digest),
    completed,
    total,
    bytesPerSecond: typeof bytesPerSecond === "number" ? bytesPerSecond : 0,
    secondsLeft: typeof secondsLeft === "number" ? secondsLeft : null,
  };
}

/** Without the name of the hash. */
function plain(digest: string): string {
  return digest.slice(digest.lastIndexOf(":") + 1);
}
