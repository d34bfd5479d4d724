// How many files this process may have open, and whether that is enough for the connections it is to take.
import { readFile } from "node:fs/promises";

/** A chat has a connection of its own on either side of the gateway. */
const perConnection = 2;
/** The engines' pipes, the cache, the log, the runtime's own. */
const apart = 256;

/** What is the matter, in words; null where it is enough, or the kernel does not say (elsewhere than on Linux). */
export async function openFilesProblem(maxConnections: number): Promise<string | null> {
  const limits = await readFile("/proc/self/limits", "utf8").catch(() => "");
  // The first number is the limit in force: at its start Node raises it as far as it may.
  const limit = Number(/^Max open files +(\d+)/m.exec(limits)?.[1] ?? Number.POSITIVE_INFINITY);
  const needed = maxConnections * perConnection + apart;
  if (limit >= needed) return null;
  return (
    `${limit} files may be open at once (ulimit -n), and --max-connections ${maxConnections} may need ${needed}: ` +
    "allow more, or fewer connections"
  );
}
