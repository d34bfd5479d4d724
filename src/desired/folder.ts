// Makes folders. In a place of its own, as Node's way to make one with all above it cannot be used everywhere.
import { mkdir, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { systemCode } from "../core/errors.ts";

/**
 * Makes a folder and those above it; one that is there is fine. Errors: what the system says. Node's own `recursive`
 * asks for ever, on a whole core, where a folder that is there takes no entries (`/proc/x`): such a place says ENOENT.
 */
export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    if (await isFolder(path)) return;
    const above = dirname(path);
    if (systemCode(error) !== "ENOENT" || above === path) throw error;
    // Also where it is there by now: another may have made it in between.
    await makeFolder(above);
    await mkdir(path).catch(async (again: unknown) => {
      if (!(await isFolder(path))) throw again;
    });
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (entry) => entry.isDirectory(),
    () => false,
  );
}
