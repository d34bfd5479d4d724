// The bytes of a local file, piece by piece, as long as nobody calls it off.
import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { basename } from "node:path";
import { cancelled } from "../../hub/errors.ts";
import type { Extents } from "./extents.ts";

const pieceBytes = 1024 * 1024;

/** Ends early where the file does. Throws `cancelled`, and what the system says of the file. */
export async function* readPieces(
  path: string,
  extents: Extents,
  signal: AbortSignal,
): AsyncGenerator<{ readonly position: number; readonly bytes: Buffer }> {
  const handle = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    for (const [from, to] of extents) {
      for (let position = from; position < to; ) {
        if (signal.aborted) throw cancelled(basename(path));
        // A new one each time: who takes it may write it later.
        const buffer = Buffer.allocUnsafe(Math.min(pieceBytes, to - position));
        const { bytesRead } = await handle.read(buffer, 0, buffer.length, position);
        if (bytesRead === 0) return;
        yield { position, bytes: buffer.subarray(0, bytesRead) };
        position += bytesRead;
      }
    }
  } finally {
    await handle.close();
  }
}
