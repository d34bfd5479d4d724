// Remembers what the files of the last looked-at models say, as clients ask for the same few again and again.
import { stat } from "node:fs/promises";
import { type GgufDetails, readGgufDetails } from "./details.ts";

export interface DetailsReader {
  /** As {@link readGgufDetails}, for shards in order. Files are read again once their size or time has changed. */
  read(paths: readonly string[]): Promise<GgufDetails | null>;
}

/** @param most models remembered; of more the one that was asked for longest ago is forgotten. */
export function createDetailsReader(most = 200): DetailsReader {
  const known = new Map<string, Promise<GgufDetails | null>>();

  async function read(paths: readonly string[]): Promise<GgufDetails | null> {
    const key = await signatureOf(paths);
    if (key === null) return null;
    const details = known.get(key) ?? readGgufDetails(paths);
    known.delete(key);
    known.set(key, details);
    const [oldest] = known.keys();
    if (known.size > most && oldest !== undefined) known.delete(oldest);
    // A file that could not be read may be readable next time, without a sign of that in its size and time.
    if ((await details) === null && known.get(key) === details) known.delete(key);
    return details;
  }

  return { read };
}

/** Null where a file is gone. */
async function signatureOf(paths: readonly string[]): Promise<string | null> {
  try {
    const files = await Promise.all(paths.map((path) => stat(path)));
    return JSON.stringify(files.map(({ size, mtimeMs }, index) => [paths[index], size, mtimeMs]));
  } catch {
    // Why it cannot be looked at shows where it is used; here nothing is known of it.
    return null;
  }
}
