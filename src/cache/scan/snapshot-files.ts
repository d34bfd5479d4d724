// The `.gguf` files of a revision in the model cache. Writes nothing.
import { lstat, readdir, readlink, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { ignoreDangling, isAbsent } from "../../core/errors.ts";
import type { Snapshot, SnapshotFile } from "../layout/models.ts";

const deepestFolder = 6;

export async function readSnapshot(root: string, commit: string): Promise<Snapshot> {
  const files: SnapshotFile[] = [];
  async function walk(folder: string, prefix: string, depth: number): Promise<void> {
    const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
      // A revision that is deleted meanwhile once hid the repository's other models, whose chats were answered 404.
      if (isAbsent(error)) return [];
      throw error;
    });
    await Promise.all(
      entries.map(async (entry) => {
        if (entry.isDirectory()) {
          if (depth < deepestFolder) await walk(join(folder, entry.name), `${prefix}${entry.name}/`, depth + 1);
        } else if (entry.name.endsWith(".gguf")) {
          const file = await readFileEntry(join(folder, entry.name), `${prefix}${entry.name}`, entry.isSymbolicLink());
          if (file) files.push(file);
        }
      }),
    );
  }
  await walk(root, "", 0);
  return { commit, files: files.toSorted((a, b) => (a.path < b.path ? -1 : 1)) };
}

/** Null where it went between two looks: that is an ordinary removal, and no folder that cannot be read. */
export async function readFileEntry(path: string, relative: string, isLink?: boolean): Promise<SnapshotFile | null> {
  try {
    const blob = (isLink ?? (await lstat(path)).isSymbolicLink()) ? basename(await readlink(path)) : null;
    const target = await stat(path).catch(ignoreDangling);
    const { mtimeMs } = target ?? (await lstat(path));
    const size = target?.isFile() ? target.size : null;
    return { path: relative, size, modifiedAt: mtimeMs, blob, damage: null };
  } catch (error) {
    if (isAbsent(error)) return null;
    throw error;
  }
}
