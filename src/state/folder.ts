// Makes folders with those above them, lists what is below one, where Node's own `recursive` cannot be used, and removes empty ones.
import type { Dirent } from "node:fs";
import { lstat, mkdir, readdir, rmdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
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

/**
 * Every entry below a folder; none of a folder that is deleted meanwhile. Links are listed and not followed. Errors: what the
 * system says. Node's own `recursive` follows links as of Node 26, and never ends where one leads to a folder above it.
 */
export async function entriesBelow(folder: string): Promise<Dirent[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const below = entries
    .filter((entry) => entry.isDirectory())
    .map(({ name }) =>
      entriesBelow(join(folder, name)).catch((error: unknown) => {
        if (systemCode(error) === "ENOENT") return [];
        throw error;
      }),
    );
  return [...entries, ...(await Promise.all(below)).flat()];
}

/** True if nothing is left in it, also if it was gone before: a removal that was cut short is finished. */
export async function removeIfEmpty(folder: string): Promise<boolean> {
  try {
    // rmdir refuses a link to a folder; it stays, and so does the folder.
    if ((await lstat(folder)).isSymbolicLink()) return (await readdir(folder)).length === 0;
    await rmdir(folder);
    return true;
  } catch (error) {
    if (systemCode(error) === "ENOENT") return true;
    if (["ENOTEMPTY", "EEXIST"].includes(systemCode(error) ?? "")) return false;
    throw error;
  }
}

async function isFolder(path: string): Promise<boolean> {
  return stat(path).then(
    (entry) => entry.isDirectory(),
    () => false,
  );
}
