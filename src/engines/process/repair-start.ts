// A start that fails because a file is damaged: the file is deleted, to be fetched again.
import { stat } from "node:fs/promises";
import { dropDamaged } from "../../cache/download/hash.ts";
import { GatewayError, toGatewayError } from "../../core/errors.ts";

/**
 * Runs `start`. Where it fails with `engine_failed`, checks `links`, names of files in the model cache. Throws `cancelled`
 * once one of them is gone: there is nothing to start with now, and nothing to wait for but the file. So it does where one is another than
 * at the beginning: a pull that mended it had not ended when the start read it. Else what `start` throws.
 */
export async function startOrMend<T>({ what, links, signal, warn }: MendOptions, start: () => Promise<T>): Promise<T> {
  const before = await versions(links);
  try {
    return await start();
  } catch (error) {
    if (toGatewayError(error).code !== "engine_failed" || signal.aborted) throw error;
    const dropped = await dropDamaged(links, signal);
    if (dropped.length === 0) {
      if ((await versions(links)) === before) throw error;
      throw new GatewayError("cancelled", `${what} has changed on the disk meanwhile`, { cause: error });
    }
    warn(`${what} was damaged on the disk and is fetched again`, { files: dropped });
    throw new GatewayError("cancelled", `${what} was damaged on the disk and is fetched again`, { cause: error });
  }
}

async function versions(links: readonly string[]): Promise<string> {
  const entries = await Promise.all(links.map(async (link) => stat(link).catch(() => null)));
  return entries.map((entry) => (entry ? `${entry.ino} ${entry.size} ${entry.mtimeMs}` : "")).join(", ");
}

export interface MendOptions {
  readonly what: string;
  /** Absolute paths. */
  readonly links: readonly string[];
  readonly signal: AbortSignal;
  readonly warn: (message: string, fields: object) => void;
}
