// The values of a GGUF's metadata pairs: reads the small ones, steps over the others. Knows no key.
import type { Cursor } from "./cursor.ts";

export const stringType = 8;
export const arrayType = 9;

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

const floatTypes: ReadonlySet<number> = new Set([6, 12]);

/** The shortest number that is this one in 32 bits: 0.000001, where the bits say 0.0000009999999974752427. */
function plainest(value: number): number {
  for (let digits = 6; digits < 9; digits += 1) {
    const shorter = Number(value.toPrecision(digits));
    if (Math.fround(shorter) === value) return shorter;
  }
  return value;
}

export function isScalar(type: number): boolean {
  return scalarTypes.has(type);
}

/** A number or a bool; null where the file ends before it does. */
export async function readScalar(cursor: Cursor, type: number): Promise<number | boolean | null> {
  const scalar = scalarTypes.get(type);
  return scalar && (await cursor.ensure(scalar.bytes)) ? scalar.read(cursor.bytes(scalar.bytes)) : null;
}

/** The value if it is a whole number that counts something, else null: floats, bools, negative and inexact ones. */
export function countOf(type: number, value: number | boolean): number | null {
  return typeof value === "number" && !floatTypes.has(type) && Number.isSafeInteger(value) && value >= 0 ? value : null;
}

/** Steps over a value of any type; false where the file ends, is damaged or the budget is spent. */
export async function skipValue(cursor: Cursor, type: number): Promise<boolean> {
  const scalar = scalarTypes.get(type);
  if (scalar) return cursor.skip(scalar.bytes);
  if (type === stringType) return (await cursor.ensure(8)) && cursor.skip(cursor.uint64());
  return type === arrayType && (await skipArray(cursor)) !== null;
}

export interface GgufArray {
  /** `string`, or a number's type as the format calls it: `float32`, `int32`. */
  readonly type: string;
  readonly length: number;
}

/** Steps over an array's elements, and says what they were; null as {@link skipValue}. */
export async function skipArray(cursor: Cursor): Promise<GgufArray | null> {
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

export const tooLong = Symbol("tooLong");

/** A string; `tooLong`, skipped, where it has more than `limit` bytes; null where the file ends before it does. */
export async function readText(cursor: Cursor, limit: number): Promise<string | typeof tooLong | null> {
  if (!(await cursor.ensure(8))) return null;
  const length = cursor.uint64();
  if (length > limit) return cursor.skip(length) ? tooLong : null;
  return (await cursor.ensure(length)) ? cursor.bytes(length).toString("utf8") : null;
}
