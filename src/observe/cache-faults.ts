// What in a repository of the model cache cannot be read. llama-server looks at every entry of its cache and does not start
// where it meets one such: a link that leads to itself, a folder of another user. Writes nothing.
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { systemCode } from "../core/errors.ts";

/** Each as `PATH (CODE)`; none where the folder is gone. */
export async function faultsIn(root: string): Promise<string[]> {
  try {
    const entries = await readdir(root, { recursive: true, withFileTypes: true });
    const links = entries.filter((entry) => entry.isSymbolicLink());
    const faults = await Promise.all(
      links.map(({ parentPath, name }) => stat(join(parentPath, name)).then(() => null, faultOf)),
    );
    return faults.filter((fault) => fault !== null).sort();
  } catch (error) {
    return [faultOf(error) ?? []].flat();
  }
}

/** Null for what is not there: a link to nothing is passed over by the router too. */
function faultOf(error: unknown): string | null {
  const code = systemCode(error);
  if (code === undefined) throw error;
  if (code === "ENOENT" || code === "ENOTDIR") return null;
  return `${(error as NodeJS.ErrnoException).path ?? "?"} (${code})`;
}
