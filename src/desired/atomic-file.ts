// Files of the state folder: written whole or not at all.
import { randomBytes } from "node:crypto";
import { open, readFile, rename, rm } from "node:fs/promises";
import { dirname } from "node:path";
import { systemCode } from "../core/errors.ts";

/** Writes beside the file, syncs, and renames: a reader or a crash sees the old text or the new one. */
export async function writeAtomic(path: string, text: string | Uint8Array, mode = 0o644): Promise<void> {
  const temporary = `${path}.${randomBytes(4).toString("hex")}.tmp`;
  try {
    const file = await open(temporary, "wx", mode);
    try {
      await file.writeFile(text);
      await file.sync();
    } finally {
      await file.close();
    }
    await rename(temporary, path);
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
  await syncFolder(dirname(path));
}

/** Makes a rename survive a power cut. Some filesystems and Windows cannot sync a folder; there the rename stands alone. */
async function syncFolder(path: string): Promise<void> {
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

/** The file's text, or null where there is none. */
export async function readIfPresent(path: string): Promise<string | null> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    if (systemCode(error) === "ENOENT") return null;
    throw error;
  }
}

/**
 * A JSON state file's value, or null where there is none. One that cannot be parsed is set aside under another name, so
 * that nothing of it is lost, and reported through `onCorrupt`.
 */
export async function readJsonState(path: string, onCorrupt: (asidePath: string) => void): Promise<unknown> {
  const text = await readIfPresent(path);
  if (text === null) return null;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    const aside = `${path}.corrupt-${Date.now()}`;
    await rename(path, aside);
    onCorrupt(aside);
    return null;
  }
}
