// Walks over the head of a GGUF file, once for every reader: the metadata pairs, then the list of tensors. Files come from
// anywhere; see cursor.ts for what is believed of their lengths.
import { type Cursor, withGguf } from "./cursor.ts";

export interface GgufHead {
  /** Numbers, bools and texts by key, oversized texts left out. */
  readonly values: Map<string, string | number | boolean>;
  readonly arrays: Map<string, GgufArray>;
  /** Chat templates by name; the default one has the name "". */
  readonly templates: Map<string, string>;
  /** Null if the list is damaged, cut or was not reached. */
  tensors: Tensors | null;
  /** `cut`: the file ends or is damaged within the pairs. `spent`: the read budget was used up before the end. */
  end: "whole" | "enough" | "spent" | "cut";
}

export interface GgufArray {
  /** `string`, or a number's type as the format calls it: `float32`, `int32`. */
  readonly type: string;
  readonly length: number;
}

interface Tensors {
  /** The number of all weights. */
  readonly weights: number;
  /** The file is long enough for its tensors: no type takes less than a bit for a weight. */
  readonly hasData: boolean;
}

const longestKey = 65_535;
const longestText = 64 * 1024;
const longestTemplate = 1024 * 1024;
/** Of all texts of a head together. */
const mostText = 4 * 1024 * 1024;
const mostDimensions = 4;

/** Called after each pair. `isBuffered`: more of the file is in memory already. */
export type IsEnough = (head: GgufHead, key: string, isBuffered: boolean) => boolean;

/** Reads the head, or as much of it as is enough. Null if the file is no readable GGUF. Never throws. */
export function readHead(path: string, isEnough: IsEnough = () => false): Promise<GgufHead | null> {
  return withGguf(path, async ({ cursor, tensors, pairs }) => {
    const head: GgufHead = { values: new Map(), arrays: new Map(), templates: new Map(), tensors: null, end: "whole" };
    let left = mostText;
    for (let pair = 0; pair < pairs; pair += 1) {
      const key = await readText(cursor, longestKey);
      const used = typeof key === "string" ? await readValue(cursor, head, key, left) : null;
      if (typeof key !== "string" || used === null) return { ...head, end: cursor.isSpent() ? "spent" : "cut" };
      left -= used;
      if (isEnough(head, key, cursor.has(1))) return { ...head, end: "enough" };
    }
    head.tensors = await readTensors(cursor, tensors);
    return cursor.isSpent() ? { ...head, end: "spent" } : head;
  });
}

/** The bytes of text that it kept, of at most `left`; null if the file ends, is damaged or the budget is spent. */
async function readValue(cursor: Cursor, head: GgufHead, key: string, left: number): Promise<number | null> {
  if (!(await cursor.ensure(4))) return null;
  const type = cursor.uint32();
  const scalar = scalarTypes.get(type);
  if (scalar) {
    if (!(await cursor.ensure(scalar.bytes))) return null;
    const value = scalar.read(cursor.bytes(scalar.bytes));
    if (left > 0) head.values.set(key, value);
    return key.length;
  }
  if (type === arrayType) {
    const array = await skipArray(cursor);
    if (array && left > 0) head.arrays.set(key, array);
    return array && key.length;
  }
  if (type !== stringType) return null;
  const template = /^tokenizer\.chat_template(?:\.(.+))?$/.exec(key);
  const text = await readText(cursor, Math.min(template ? longestTemplate : longestText, Math.max(0, left)));
  if (text === null) return null;
  if (text === tooLong) return key.length;
  if (template) head.templates.set(template[1] ?? "", text);
  else head.values.set(key, text);
  return key.length + text.length;
}

/** Null if the list is damaged or cut. */
async function readTensors(cursor: Cursor, tensors: number): Promise<Tensors | null> {
  let weights = 0;
  let leastBytes = 0;
  for (let tensor = 0; tensor < tensors; tensor += 1) {
    if (!cursor.has(8) && !(await cursor.ensure(8))) return null;
    if (!cursor.skip(cursor.uint64())) return null;
    if (!cursor.has(4) && !(await cursor.ensure(4))) return null;
    const dimensions = cursor.uint32();
    const rest = dimensions * 8 + 12; // the sizes, the type and the place of the data
    if (dimensions > mostDimensions || (!cursor.has(rest) && !(await cursor.ensure(rest)))) return null;
    let product = 1;
    for (let dimension = 0; dimension < dimensions; dimension += 1) product *= cursor.uint64();
    weights += product;
    cursor.skip(4);
    leastBytes = Math.max(leastBytes, cursor.uint64() + Math.floor(product / 8));
  }
  return { weights, hasData: cursor.skip(leastBytes) };
}

const stringType = 8;
const arrayType = 9;

interface ScalarType {
  readonly bytes: number;
  readonly name: string;
  readonly read: (bytes: Buffer) => number | boolean;
}

const scalarTypes: ReadonlyMap<number, ScalarType> = new Map([
  [0, { bytes: 1, name: "uint8", read: (bytes) => bytes.readUInt8() }],
  [1, { bytes: 1, name: "int8", read: (bytes) => bytes.readInt8() }],
  [2, { bytes: 2, name: "uint16", read: (bytes) => bytes.readUInt16LE() }],
  [3, { bytes: 2, name: "int16", read: (bytes) => bytes.readInt16LE() }],
  [4, { bytes: 4, name: "uint32", read: (bytes) => bytes.readUInt32LE() }],
  [5, { bytes: 4, name: "int32", read: (bytes) => bytes.readInt32LE() }],
  [6, { bytes: 4, name: "float32", read: (bytes) => plainest(bytes.readFloatLE()) }],
  [7, { bytes: 1, name: "bool", read: (bytes) => bytes.readUInt8() !== 0 }],
  // Roughly, above 2^53.
  [10, { bytes: 8, name: "uint64", read: (bytes) => Number(bytes.readBigUInt64LE()) }],
  [11, { bytes: 8, name: "int64", read: (bytes) => Number(bytes.readBigInt64LE()) }],
  [12, { bytes: 8, name: "float64", read: (bytes) => bytes.readDoubleLE() }],
] satisfies [number, ScalarType][]);

/** The shortest number that is this one in 32 bits: 0.000001, where the bits mean 0.0000009999999974752427. */
function plainest(value: number): number {
  for (let digits = 6; digits < 9; digits += 1) {
    const shorter = Number(value.toPrecision(digits));
    if (Math.fround(shorter) === value) return shorter;
  }
  return value;
}

/** Skips an array's elements; null if the file ends, is damaged or the budget is spent. */
async function skipArray(cursor: Cursor): Promise<GgufArray | null> {
  if (!(await cursor.ensure(12))) return null;
  const type = cursor.uint32();
  const length = cursor.uint64();
  const scalar = scalarTypes.get(type);
  if (scalar) return cursor.skip(length * scalar.bytes) ? { type: scalar.name, length } : null;
  // Arrays of arrays are in the format and in no file; llama.cpp refuses them too.
  if (type !== stringType) return null;
  for (let element = 0; element < length; element += 1) {
    // Awaited only at the end of a chunk: a vocabulary has some hundred thousand elements.
    if (!cursor.has(8) && !(await cursor.ensure(8))) return null;
    if (!cursor.skip(cursor.uint64())) return null;
  }
  return { type: "string", length };
}

const tooLong = Symbol("tooLong");

/** A string; `tooLong`, skipped, if it exceeds `limit` bytes; null if the file ends before it does. */
async function readText(cursor: Cursor, limit: number): Promise<string | typeof tooLong | null> {
  if (!(await cursor.ensure(8))) return null;
  const length = cursor.uint64();
  if (length > limit) return cursor.skip(length) ? tooLong : null;
  return (await cursor.ensure(length)) ? cursor.bytes(length).toString("utf8") : null;
}
