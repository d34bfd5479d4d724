// Folders: made with those above them, listed with all that is below, synced, and removed when empty.
import type { Dirent } from "node:fs";
import { lstat, mkdir, open, readdir, rmdir, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { ignoreAbsent, ignoreDangling, systemCode } from "../core/errors.ts";

/** With those above it. Node's own `recursive` never ends, on a whole core, where a folder takes no entries (`/proc/x`): here ENOENT. */
export async function makeFolder(path: string): Promise<void> {
  try {
    await mkdir(path);
  } catch (error) {
    if (await isFolder(path)) return;
    const above = dirname(path);
    if (systemCode(error) !== "ENOENT" || above === path) throw error;
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

/** A folder's names; none if there is no such folder. */
export async function namesIn(folder: string): Promise<string[]> {
  return (await readdir(folder).catch(ignoreDangling)) ?? [];
}

/** None of a folder that is deleted meanwhile. Links are not followed: Node's own `recursive` follows them as of Node 26, in circles too. */
export async function entriesBelow(folder: string): Promise<Dirent[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory());
  const below = await Promise.all(folders.map(({ name }) => entriesBelow(join(folder, name)).catch(ignoreAbsent)));
  return [...entries, ...below.flatMap((found) => found ?? [])];
}

/** Makes a rename survive a power cut. Some filesystems and Windows cannot sync a folder; there the rename stands alone. */
export async function syncFolder(path: string): Promise<void> {
  const folder = await open(path, "r").catch(() => null);
  if (!folder) return;
  try {
    await folder.sync();
  } catch (error) {
    if (!["EINVAL", "EPERM", "EISDIR", "ENOTSUP"].includes(systemCode(error) ?? "")) throw error;
  } finally {
    await folder.close();
  }
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

/** A folder and those in it, as far as they are empty. */
export async function removeEmptyTree(folder: string): Promise<void> {
  if ((await lstat(folder).catch(ignoreAbsent))?.isDirectory() !== true) return;
  for (const entry of await readdir(folder, { withFileTypes: true }))
    if (entry.isDirectory()) await removeEmptyTree(join(folder, entry.name));
  await removeIfEmpty(folder);
}
