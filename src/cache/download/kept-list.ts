// A list from the hub: asked for now and then, and kept on the disk while the hub is down.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import { parseJson } from "../../core/json.ts";
import { createSharedWork } from "../../core/shared-work.ts";
import { writeAtomic } from "../../state/atomic-file.ts";

/** ms after a failure in which a list that was kept is answered without asking. */
const restMs = 60_000;

export interface KeptListOptions {
  readonly stateDir: string;
  /** ms until the hub is asked again. */
  readonly freshMs: number;
  readonly now: () => number;
}

/** `read` answers null for what is no list; one without entries is none. */
export function keptList<T>(
  { stateDir, freshMs, now }: KeptListOptions,
  name: string,
  read: (value: unknown) => readonly T[] | null,
  fetchText: (signal: AbortSignal) => Promise<string>,
): (signal: AbortSignal) => Promise<readonly T[]> {
  const path = join(stateDir, name);
  let known: readonly T[] | null = null;
  let askAgainAt = 0;
  const ask = createSharedWork(async (signal) => {
    try {
      const text = await fetchText(signal);
      const list = read(parseJson(text));
      if (list === null) throw new GatewayError("hub_unreachable", `${name} from the hub is not a list`);
      known = list;
      askAgainAt = now() + freshMs;
      // Only used while the hub is down: a folder that cannot be written is reported elsewhere.
      await writeAtomic(path, text).catch(() => undefined);
    } catch (error) {
      const failure = toGatewayError(error);
      if (failure.code === "cancelled" || signal.aborted) throw failure;
      known ??= read(parseJson(await readFile(path, "utf8").catch(() => "")));
      if (known === null) throw failure;
      askAgainAt = now() + restMs;
    }
    return known;
  });
  return async (signal) => (known !== null && now() < askAgainAt ? known : ask(signal));
}
