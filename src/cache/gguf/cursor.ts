// The bytes of a GGUF's head, read in pieces as they are needed. No length is believed before the bytes it promises are known
// to be there, and no file is read beyond a budget.
import { type FileHandle, open, stat } from "node:fs/promises";

const ggufMagic = 0x46554747;

const firstRead = 64 * 1024;
const furtherRead = 1024 * 1024;
/** The largest vocabularies with their merges take some 15 MiB; a fact that is further back is given up. */
const readBudget = 64 * 1024 * 1024;
/** Files of today have some 50 pairs; two million would hold up everything else for most of a second. */
const mostPairs = 1024;

export interface Cursor {
  /** Whether the next `count` bytes are in memory. */
  has(count: number): boolean;
  /** Brings them there; false where the file ends or the budget is spent. `count` is small: 1 MiB at most. */
  ensure(count: number): Promise<boolean>;
  /** Moves on without reading; false where the file ends before that. */
  skip(count: number): boolean;
  isSpent(): boolean;
  uint32(): number;
  /** Above 2^53 it is only roughly the number, which is enough to see that no file is as long. */
  uint64(): number;
  /** The next `count` bytes, which are in memory; of use until the next `ensure`. */
  bytes(count: number): Buffer;
}

/** The first bytes of a file. Versions 2 and 3, little endian; no other is in use. */
interface GgufStart {
  readonly cursor: Cursor;
  readonly tensors: number;
  readonly pairs: number;
}

/** Runs `read` on the head of the GGUF at `path`; null if it is no readable GGUF. Never throws. */
export async function withGguf<T>(path: string, read: (start: GgufStart) => Promise<T | null>): Promise<T | null> {
  let handle: FileHandle | undefined;
  try {
    // Checked before it is opened: opening a named pipe waits for a writer.
    const file = await stat(path);
    if (!file.isFile()) return null;
    handle = await open(path, "r");
    const cursor = createCursor(handle, file.size);
    if (!(await cursor.ensure(24)) || cursor.uint32() !== ggufMagic) return null;
    const version = cursor.uint32();
    if (version !== 2 && version !== 3) return null;
    const tensors = cursor.uint64();
    const pairs = cursor.uint64();
    return pairs > mostPairs ? null : await read({ cursor, tensors, pairs });
  } catch {
    // "Not known" is the answer; the engine that opens the file for its content reports the cause.
    return null;
  } finally {
    await handle?.close().catch(() => undefined);
  }
}

function createCursor(handle: FileHandle, size: number): Cursor {
  let chunk = Buffer.alloc(0);
  let chunkStart = 0;
  let at = 0;
  let read = 0;
  let spent = false;

  function has(count: number): boolean {
    return at + count <= chunk.length;
  }

  function take(count: number): number {
    const start = at;
    at += count;
    return start;
  }

  return {
    has,
    async ensure(count) {
      if (has(count)) return true;
      const position = chunkStart + at;
      if (position + count > size) return false;
      const wanted = Math.min(Math.max(read === 0 ? firstRead : furtherRead, count), size - position);
      if (read + wanted > readBudget) {
        spent = true;
        return false;
      }
      const next = Buffer.alloc(wanted);
      let filled = 0;
      while (filled < wanted) {
        const { bytesRead } = await handle.read(next, filled, wanted - filled, position + filled);
        if (bytesRead === 0) break; // it shrank meanwhile
        filled += bytesRead;
      }
      read += filled;
      chunk = next.subarray(0, filled);
      chunkStart = position;
      at = 0;
      return has(count);
    },
    skip(count) {
      if (chunkStart + at + count > size) return false;
      at += count;
      return true;
    },
    isSpent: () => spent,
    uint32: () => chunk.readUInt32LE(take(4)),
    uint64() {
      const start = take(8);
      return chunk.readUInt32LE(start) + chunk.readUInt32LE(start + 4) * 2 ** 32;
    },
    bytes(count) {
      const start = take(count);
      return chunk.subarray(start, start + count);
    },
  };
}
