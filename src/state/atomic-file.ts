// Files of the state folder: written whole or not at all.
import { randomBytes } from "node:crypto";
import { open, readdir, rename, rm } from "node:fs/promises";
import { dirname, join } from "node:path";
import { GatewayError, systemCode } from "../core/errors.ts";
import { readFile } from "./files.ts";
import { syncFolder } from "./folder.ts";

/**
 * Writes beside the file, syncs, and renames: a reader or a crash sees the old text or the new one. `isFinal`: after a power cut too
 * it is the new one.
 */
export async function writeAtomic(
  path: string,
  text: string | Uint8Array,
  { mode = 0o644, isFinal = true }: { readonly mode?: number; readonly isFinal?: boolean } = {},
): Promise<void> {
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
    // Only a try: in a folder that is gone or read-only this fails too, and the first error says why.
    await rm(temporary, { force: true }).catch(() => undefined);
    throw error;
  }
  if (isFinal) await syncFolder(dirname(path));
}

/** Removes what a killed writer left behind. Only for a folder without other writers. */
export async function removeTemporaries(folder: string): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true }))
    if (entry.isFile() && /\.[0-9a-f]{8}\.tmp$/.test(entry.name)) await rm(join(folder, entry.name), { force: true });
}

/** The file's text, or null where there is none. */
export async function readIfPresent(path: string): Promise<string | null> {
  return (await readBytesIfPresent(path))?.toString("utf8") ?? null;
}

/** What the file holds, or null where there is none. */
export async function readBytesIfPresent(path: string): Promise<Buffer | null> {
  try {
    return await readFile(path);
  } catch (error) {
    if (systemCode(error) === "ENOENT") return null;
    throw error;
  }
}

/** Whether the disk has no space left, or none for this user. */
export function isFull(error: unknown): boolean {
  return ["ENOSPC", "EDQUOT", "EFBIG"].includes(systemCode(error) ?? "");
}

/** Whether the disk takes no writes at all: it is full or read-only. */
export function isDiskRefusal(error: unknown): boolean {
  return isFull(error) || systemCode(error) === "EROFS";
}

/** Writes a file of the state folder. Errors: `disk_full`, `state_unwritable`; the file is then as it was. */
export async function writeState(path: string, text: string, isFinal = true): Promise<void> {
  try {
    await writeAtomic(path, text, { isFinal });
  } catch (error) {
    throw stateError(path, error);
  }
}

/** Any failure to write a file of the state folder, as `disk_full` or `state_unwritable`. */
export function stateError(path: string, error: unknown): GatewayError {
  if (error instanceof GatewayError && ["disk_full", "state_unwritable"].includes(error.code)) return error;
  const why = error instanceof GatewayError ? error.message : (systemCode(error) ?? String(error));
  const kind = isFull(error) ? "disk_full" : "state_unwritable";
  return new GatewayError(kind, `${path} cannot be written (${why})`, { cause: error });
}
