// Folders: made with those above them, and listed with all that is below.
import type { Dirent } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { ignoreAbsent } from "../core/errors.ts";

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
