// Reads the few facts that the gateway wants from the head of a GGUF file (versions 2 and 3, little endian).
// Files come from anywhere: no length field is believed before the bytes it promises are known to be there.
import { type FileHandle, open, stat } from "node:fs/promises";

export interface GgufMetadata {
  readonly architecture: string;
  readonly name?: string;
  /** `general.file_type`, llama.cpp's number of the quantisation. */
  readonly fileType?: number;
  /** Trained context in tokens. */
  readonly contextLength?: number;
}

const firstRead = 64 * 1024;
const furtherRead = 1024 * 1024;
/** The largest vocabularies with their merges take some 15 MiB; a fact that is further back is given up. */
const readBudget = 64 * 1024 * 1024;
const longestKey = 65_535;
const longestName = 4096;
const magic = 0x46554747;

/**
 * Metadata of the file at `path`, read no further than needed. Null for whatever is no readable GGUF: missing, not a
 * regular file, truncated before the facts were found, damaged, big endian. Never throws.
 */
export async function readGgufMetadata(path: string): Promise<GgufMetadata | null> {
  let handle: FileHandle | undefined;
  try {
    // Looked at before it is opened: opening a named pipe waits for a writer.
    const file = await stat(path);
    if (!file.isFile()) return null;
    handle = await open(path, "r");
    return await readHead(createCursor(handle, file.size));
  } catch {
    // "Not known" is the answer here; whoever opens the file for its content meets the cause and reports it.
    return null;
  } finally {
    await handle?.close().catch(() => undefined);
  }
}

/** Whether a file begins as every GGUF does. */
export async function hasGgufMagic(path: string): Promise<boolean> {
  const handle = await open(path, "r");
  try {
    const head = Buffer.alloc(4);
    return (await handle.read(head, 0, 4, 0)).bytesRead === 4 && head.readUInt32LE(0) === magic;
  } finally {
    await handle.close();
  }
}

interface Facts {
  architecture?: string;
  name?: string;
  fileType?: number;
  /** By key, as the architecture that says which one counts may come later. */
  readonly contextLengths: Map<string, number>;
}

async function readHead(cursor: Cursor): Promise<GgufMetadata | null> {
  if (!(await cursor.ensure(24))) return null;
  if (cursor.uint32() !== magic) return null;
  const version = cursor.uint32();
  if (version !== 2 && version !== 3) return null;
  cursor.uint64(); // number of tensors
  const pairs = cursor.uint64();
  const facts: Facts = { contextLengths: new Map() };
  for (let pair = 0; pair < pairs; pair += 1) {
    if (!(await readPair(cursor, facts))) return cursor.isSpent() ? toMetadata(facts) : null;
    const known = toMetadata(facts);
    if (known?.name !== undefined && known.fileType !== undefined && known.contextLength !== undefined) return known;
  }
  return toMetadata(facts);
}

function toMetadata(facts: Facts): GgufMetadata | null {
  const { architecture, name, fileType, contextLengths } = facts;
  if (architecture === undefined) return null;
  const contextLength = contextLengths.get(`${architecture}.context_length`);
  return {
    architecture,
    ...(name === undefined ? {} : { name }),
    ...(fileType === undefined ? {} : { fileType }),
    ...(contextLength === undefined ? {} : { contextLength }),
  };
}

/** False where the file ends, is damaged or the budget is spent. */
async function readPair(cursor: Cursor, facts: Facts): Promise<boolean> {
  const key = await readText(cursor, longestKey);
  if (typeof key !== "string" || !(await cursor.ensure(4))) return false;
  const type = cursor.uint32();
  if (key === "general.architecture" && type === stringType) {
    const text = await readText(cursor, longestName);
    if (typeof text !== "string" || !/^[\w.-]{1,64}$/.test(text)) return false;
    facts.architecture ??= text;
    return true;
  }
  if (key === "general.name" && type === stringType) {
    const text = await readText(cursor, longestName);
    if (text === null) return false;
    if (text !== tooLong && text.trim() !== "") facts.name ??= text.trim();
    return true;
  }
  const width = scalarWidths.get(type);
  if (width !== undefined && (key === "general.file_type" || key.endsWith(".context_length"))) {
    if (!(await cursor.ensure(width))) return false;
    const value = cursor.integer(type, width);
    if (value === null) return true;
    if (key === "general.file_type") facts.fileType ??= value;
    else if (value > 0 && facts.contextLengths.size < 16) facts.contextLengths.set(key, value);
    return true;
  }
  return skipValue(cursor, type);
}

const stringType = 8;
const arrayType = 9;
/** Bytes of the types that have a fixed size; 0-5 and 10-11 are integers, 6 and 12 floats, 7 a bool. */
const scalarWidths: ReadonlyMap<number, number> = new Map([
  [0, 1],
  [1, 1],
  [2, 2],
  [3, 2],
  [4, 4],
  [5, 4],
  [6, 4],
  [7, 1],
  [10, 8],
  [11, 8],
  [12, 8],
]);
const signedTypes: ReadonlySet<number> = new Set([1, 3, 5, 11]);
const otherTypes: ReadonlySet<number> = new Set([6, 7, 12]);

async function skipValue(cursor: Cursor, type: number): Promise<boolean> {
  const width = scalarWidths.get(type);
  if (width !== undefined) return cursor.skip(width);
  if (type === stringType) return skipText(cursor);
  if (type !== arrayType || !(await cursor.ensure(12))) return false;
  const elementType = cursor.uint32();
  const count = cursor.uint64();
  const elementWidth = scalarWidths.get(elementType);
  if (elementWidth !== undefined) return cursor.skip(count * elementWidth);
  // Arrays of arrays are in the format and in no file; llama.cpp refuses them too.
  if (elementType !== stringType) return false;
  for (let element = 0; element < count; element += 1) {
    // Awaited only at the end of a chunk: a vocabulary has some hundred thousand elements.
    if (!cursor.has(8) && !(await cursor.ensure(8))) return false;
    if (!cursor.skip(cursor.uint64())) return false;
  }
  return true;
}

async function skipText(cursor: Cursor): Promise<boolean> {
  return (await cursor.ensure(8)) && cursor.skip(cursor.uint64());
}

const tooLong = Symbol("tooLong");

/** A string; `tooLong`, skipped, where it has more than `limit` bytes; null where the file ends before it does. */
async function readText(cursor: Cursor, limit: number): Promise<string | typeof tooLong | null> {
  if (!(await cursor.ensure(8))) return null;
  const length = cursor.uint64();
  if (length > limit) return cursor.skip(length) ? tooLong : null;
  return (await cursor.ensure(length)) ? cursor.text(length) : null;
}

interface Cursor {
  /** Whether the next `count` bytes are in memory. */
  has(count: number): boolean;
  /** Brings them there; false where the file ends or the budget is spent. `count` is small: 64 KiB at most. */
  ensure(count: number): Promise<boolean>;
  /** Moves on without reading; false where the file ends before that. */
  skip(count: number): boolean;
  isSpent(): boolean;
  uint32(): number;
  /** Above 2^53 it is only roughly the number, which is enough to see that no file is as long. */
  uint64(): number;
  /** Null for a float, a bool, a negative or an inexact number. */
  integer(type: number, width: number): number | null;
  text(length: number): string;
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

  function uint64(): number {
    const start = take(8);
    return chunk.readUInt32LE(start) + chunk.readUInt32LE(start + 4) * 2 ** 32;
  }

  return {
    has,
    async ensure(count) {
      if (has(count)) return true;
      const position = chunkStart + at;
      if (position + count > size) return false;
      const wanted = Math.min(read === 0 ? firstRead : furtherRead, size - position);
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
    uint64,
    integer(type, width) {
      const start = take(width);
      if (otherTypes.has(type)) return null;
      const low = chunk.readUIntLE(start, Math.min(width, 4));
      const high = width === 8 ? chunk.readUInt32LE(start + 4) : 0;
      const isNegative = signedTypes.has(type) && (chunk[start + width - 1] ?? 0) >= 0x80;
      const value = low + high * 2 ** 32;
      return isNegative || !Number.isSafeInteger(value) ? null : value;
    },
    text(length) {
      const start = take(length);
      return chunk.toString("utf8", start, start + length);
    },
  };
}
