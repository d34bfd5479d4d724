// Entries of a cached repository that cannot be read: a link that leads to itself, a folder of another user. llama-server exits
// at the first one. Writes nothing.
import { stat } from "node:fs/promises";
import { join } from "node:path";
import { isAbsent, systemCode } from "../../core/errors.ts";
import { entriesBelow } from "../../state/folder.ts";

/** Each as `PATH (CODE)`; empty for a folder that is gone. */
export async function faultsIn(root: string): Promise<string[]> {
  try {
    const entries = await entriesBelow(root);
    const links = entries.filter((entry) => entry.isSymbolicLink());
    const faults = await Promise.all(
      links.map(({ parentPath, name }) => stat(join(parentPath, name)).then(() => null, faultOf)),
    );
    return faults.filter((fault) => fault !== null).sort();
  } catch (error) {
    return [faultOf(error) ?? []].flat();
  }
}

/** Null for an absent target: the router skips dangling links too. */
function faultOf(error: unknown): string | null {
  const code = systemCode(error);
  if (code === undefined) throw error;
  if (isAbsent(error)) return null;
  return `${(error as NodeJS.ErrnoException).path ?? "?"} (${code})`;
}
