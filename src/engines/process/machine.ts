// Whether a program is built for this kind of machine. The system's own error misleads: it runs an unknown program as a shell
// script, which fails with a line about a command that was not found.
import { open } from "node:fs/promises";

/** Class, byte order and machine of a Linux program; null where it is none, or cannot be read. */
async function kindOf(path: string): Promise<string | null> {
  const file = await open(path, "r").catch(() => null);
  if (!file) return null;
  try {
    const head = Buffer.alloc(20);
    const { bytesRead } = await file.read(head, 0, head.length, 0);
    if (bytesRead < head.length || head.toString("latin1", 0, 4) !== "\x7fELF") return null;
    return `${head[4]} ${head[5]} ${head.toString("hex", 18, 20)}`;
  } catch {
    return null;
  } finally {
    await file.close();
  }
}

/** False also for scripts and unknown files: then the start decides. */
export async function isForAnotherMachine(path: string): Promise<boolean> {
  const kind = await kindOf(path);
  const own = await kindOf(process.execPath);
  return kind !== null && own !== null && kind !== own;
}
