// The head of a GGUF file, for every reader: the metadata pairs, then the list of tensors. Files come from anywhere: no length
// is believed before the bytes that it promises are known to be there, and no file is read beyond a budget.
import { type FileHandle, open, stat } from "node:fs/promises";
import { createSerial } from "../../core/serial.ts";

export interface GgufHead {
  /** Numbers, bools and texts by key, oversized texts left out; null: an array, which is passed over. */
  readonly values: Map<string, string | number | boolean | null>;
  /** Chat templates by name; the default one has the name "". */
  readonly templates: Map<string, string>;
  /** Null if the list is damaged, cut or was not reached. */
  tensors: Tensors | null;
  /** `cut`: the file ends or is damaged within the pairs. `unread`: it goes on behind what was read of it. */
  end: "whole" | "enough" | "unread" | "cut";
}

interface Tensors {
  /** The number of all weights. */
  readonly weights: number;
  /** The file is long enough for its tensors: no type takes less than a bit for a weight. */
  readonly hasData: boolean;
}

const ggufMagic = 0x46554747;
/** Files of today have some 50 pairs; two million would hold up everything else for most of a second. */
const mostPairs = 1024;
const longestKey = 65_535;
const longestText = 64 * 1024;
const longestTemplate = 1024 * 1024;
/** Of all texts of a head together. */
const mostText = 4 * 1024 * 1024;
const mostDimensions = 4;
/** The largest vocabularies with their merges take some 15 MiB; a fact that is further back is given up. */
const readSizes = [64 * 1024, 1024 * 1024, 16 * 1024 * 1024, 64 * 1024 * 1024];
/** The larger reads one at a time: a scan asks for all models of a cache at once. */
const inTurn = createSerial();

/** Asked after the pair `key`; with null where more of the file would have to be read. */
export type IsEnough = (head: GgufHead, key: string | null) => boolean;

/** Reads the head, or as much of it as is enough. Null if the file is no readable GGUF. Never throws. */
export async function readHead(path: string, isEnough: IsEnough = () => false): Promise<GgufHead | null> {
  let handle: FileHandle | undefined;
  try {
    // Checked before it is opened: opening a named pipe waits for a writer.
    const file = await stat(path);
    if (!file.isFile()) return null;
    const opened = await open(path, "r");
    handle = opened;
    let head: GgufHead | null = null;
    for (const [step, length] of readSizes.entries()) {
      const read = () => readStart(opened, Math.min(length, file.size), file.size, isEnough);
      head = await (step === 0 ? read() : inTurn(read));
      if (head?.end !== "unread" || isEnough(head, null)) break;
    }
    return head;
  } catch {
    // "Not known" is the answer; the engine that opens the file for its content reports the cause.
    return null;
  } finally {
    await handle?.close().catch(() => undefined);
  }
}

/** What the first bytes of a file have of its head. */
async function readStart(handle: FileHandle, length: number, fileSize: number, isEnough: IsEnough) {
  const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(length), 0, length, 0);
  return parse(createReader(buffer.subarray(0, bytesRead), fileSize), isEnough);
}

/** Whether the first bytes of a file of this size have its whole head, the list of tensors included; `unread`: it goes on. */
export function headIn(start: Buffer, fileSize: number): "whole" | "unread" | "damaged" {
  try {
    const head = parse(createReader(start, fileSize), () => false);
    if (head?.end === "unread") return "unread";
    return head?.end === "whole" && head.tensors ? "whole" : "damaged";
  } catch (error) {
    if (!(error instanceof HeadEnd)) throw error;
    return error.isUnread ? "unread" : "damaged";
  }
}

/** Versions 2 and 3, little endian; no other is in use. */
function parse(reader: Reader, isEnough: IsEnough): GgufHead | null {
  const magic = reader.uint32();
  const version = reader.uint32();
  const tensors = reader.uint64();
  const pairs = reader.uint64();
  if (magic !== ggufMagic || (version !== 2 && version !== 3) || pairs > mostPairs) return null;
  const head: GgufHead = { values: new Map(), templates: new Map(), tensors: null, end: "cut" };
  let left = mostText;
  try {
    for (let pair = 0; pair < pairs; pair += 1) {
      const key = reader.text(longestKey) ?? cut();
      left -= readValue(reader, head, key, left);
      if (isEnough(head, key)) return { ...head, end: "enough" };
    }
    head.end = "whole";
    head.tensors = readTensors(reader, tensors);
  } catch (error) {
    if (!(error instanceof HeadEnd)) throw error;
    if (error.isUnread) head.end = "unread";
  }
  return head;
}

/** The bytes of text that it kept, of at most `left`. */
function readValue(reader: Reader, head: GgufHead, key: string, left: number): number {
  const type = reader.uint32();
  if (type === stringType) {
    const template = /^tokenizer\.chat_template(?:\.(.+))?$/.exec(key);
    const text = reader.text(Math.min(template ? longestTemplate : longestText, Math.max(0, left)));
    if (text === null) return key.length;
    if (template) head.templates.set(template[1] ?? "", text);
    else head.values.set(key, text);
    return key.length + text.length;
  }
  const value = type === arrayType ? skipArray(reader) : readScalar(reader, type);
  if (left > 0) head.values.set(key, value);
  return key.length;
}

function readScalar(reader: Reader, type: number): number | boolean {
  const scalar = scalarTypes.get(type) ?? cut();
  return scalar.read(reader.bytes(scalar.bytes));
}

function skipArray(reader: Reader): null {
  const type = reader.uint32();
  const length = reader.uint64();
  // Arrays of arrays are in the format and in no file; llama.cpp refuses them too.
  if (type !== stringType) reader.skip(length * (scalarTypes.get(type) ?? cut()).bytes);
  else for (let element = 0; element < length; element += 1) reader.skip(reader.uint64());
  return null;
}

function readTensors(reader: Reader, count: number): Tensors {
  let weights = 0;
  let leastBytes = 0;
  for (let tensor = 0; tensor < count; tensor += 1) {
    reader.skip(reader.uint64());
    const dimensions = reader.uint32();
    if (dimensions > mostDimensions) cut();
    let product = 1;
    for (let dimension = 0; dimension < dimensions; dimension += 1) product *= reader.uint64();
    weights += product;
    reader.skip(4);
    leastBytes = Math.max(leastBytes, reader.uint64() + Math.floor(product / 8));
  }
  return { weights, hasData: reader.isFollowedBy(leastBytes) };
}

const stringType = 8;
const arrayType = 9;

interface ScalarType {
  readonly bytes: number;
  readonly read: (bytes: Buffer) => number | boolean;
}

/** By the format's numbers. */
const scalarTypes: ReadonlyMap<number, ScalarType> = new Map([
  [0, { bytes: 1, read: (bytes) => bytes.readUInt8() }],
  [1, { bytes: 1, read: (bytes) => bytes.readInt8() }],
  [2, { bytes: 2, read: (bytes) => bytes.readUInt16LE() }],
  [3, { bytes: 2, read: (bytes) => bytes.readInt16LE() }],
  [4, { bytes: 4, read: (bytes) => bytes.readUInt32LE() }],
  [5, { bytes: 4, read: (bytes) => bytes.readInt32LE() }],
  [6, { bytes: 4, read: (bytes) => plainest(bytes.readFloatLE()) }],
  [7, { bytes: 1, read: (bytes) => bytes.readUInt8() !== 0 }],
  // Roughly, above 2^53.
  [10, { bytes: 8, read: (bytes) => Number(bytes.readBigUInt64LE()) }],
  [11, { bytes: 8, read: (bytes) => Number(bytes.readBigInt64LE()) }],
  [12, { bytes: 8, read: (bytes) => bytes.readDoubleLE() }],
] satisfies [number, ScalarType][]);

/** The shortest number that is this one in 32 bits: 0.000001, where the bits mean 0.0000009999999974752427. */
function plainest(value: number): number {
  for (let digits = 6; digits < 9; digits += 1) {
    const shorter = Number(value.toPrecision(digits));
    if (Math.fround(shorter) === value) return shorter;
  }
  return value;
}

/** The head ends before it should: the file is cut or damaged, or the rest was not read. */
class HeadEnd extends Error {
  readonly isUnread: boolean;
  constructor(isUnread: boolean) {
    super();
    this.isUnread = isUnread;
  }
}

function cut(): never {
  throw new HeadEnd(false);
}

type Reader = ReturnType<typeof createReader>;

/** The first bytes of a file, in order. */
function createReader(buffer: Buffer, fileSize: number) {
  let at = 0;

  /** Moves on by `count` bytes; the answer is where they begin. */
  function skip(count: number): number {
    if (at + count > buffer.length) throw new HeadEnd(at + count <= fileSize);
    at += count;
    return at - count;
  }

  function uint64(): number {
    const start = skip(8);
    // Above 2^53 only roughly the number, which is enough to see that no file is as long.
    return buffer.readUInt32LE(start) + buffer.readUInt32LE(start + 4) * 2 ** 32;
  }

  function bytes(count: number): Buffer {
    const start = skip(count);
    return buffer.subarray(start, start + count);
  }

  return {
    uint32: (): number => buffer.readUInt32LE(skip(4)),
    uint64,
    bytes,
    skip,
    /** Null, and passed over, if it is longer than `limit`. */
    text: (limit: number): string | null => {
      const length = uint64();
      if (length <= limit) return bytes(length).toString("utf8");
      skip(length);
      return null;
    },
    isFollowedBy: (count: number): boolean => at + count <= fileSize,
  };
}
