// A start that fails because a file is damaged: the file is deleted, to be fetched again.
import { dropDamaged } from "../../cache/download/hash.ts";
import { GatewayError, toGatewayError } from "../../core/errors.ts";

export interface MendOptions {
  readonly what: string;
  /** Absolute paths of names of files in the model cache. */
  readonly links: readonly string[];
  readonly signal: AbortSignal;
  readonly warn: (message: string, fields: object) => void;
}

/** Throws `cancelled` where the start failed over a damaged file: there is nothing to wait for but the file. Else as `start`. */
export async function startOrMend<T>({ what, links, signal, warn }: MendOptions, start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    if (toGatewayError(error).code !== "engine_failed" || signal.aborted) throw error;
    const files = await dropDamaged(links, signal);
    if (files.length === 0) throw error;
    const message = `${what} was damaged on the disk and is fetched again`;
    warn(message, { files });
    throw new GatewayError("cancelled", message, { cause: error });
  }
}
