// Folders: made with those above them, listed with all that is below, and removed when empty.
import type { Dirent } from "node:fs";
import { lstat, mkdir, readdir, rmdir } from "node:fs/promises";
import { join } from "node:path";
import { ignoreAbsent, systemCode } from "../core/errors.ts";

/** Makes a folder and those above it; one that exists is fine. */
export async function makeFolder(path: string): Promise<void> {
  await mkdir(path, { recursive: true });
}

/**
 * Every entry below a folder; none of a folder that is deleted meanwhile. Links are listed and not followed: Node's own
 * `recursive` follows them as of Node 26, and never ends where one leads to a folder above it.
 */
export async function entriesBelow(folder: string): Promise<Dirent[]> {
  const entries = await readdir(folder, { withFileTypes: true });
  const folders = entries.filter((entry) => entry.isDirectory());
  const below = await Promise.all(folders.map(({ name }) => entriesBelow(join(folder, name)).catch(ignoreAbsent)));
  return [...entries, ...below.flatMap((found) => found ?? [])];
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
