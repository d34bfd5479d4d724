// Walks over the list of tensors behind a GGUF's metadata.
import type { Cursor } from "./cursor.ts";

const mostDimensions = 4;

export interface Tensors {
  /** The number of all weights. */
  readonly weights: number;
  /** Bytes from the list's end that the file has at least: no type takes less than a bit for a weight. */
  readonly leastBytes: number;
}

/** Null where the list is damaged or cut. */
export async function readTensors(cursor: Cursor, tensors: number): Promise<Tensors | null> {
  let weights = 0;
  let leastBytes = 0;
  for (let tensor = 0; tensor < tensors; tensor += 1) {
    if (!cursor.has(8) && !(await cursor.ensure(8))) return null;
    if (!cursor.skip(cursor.uint64())) return null;
    if (!cursor.has(4) && !(await cursor.ensure(4))) return null;
    const dimensions = cursor.uint32();
    const rest = dimensions * 8 + 12; // the sizes, the type and where the data lies
    if (dimensions > mostDimensions || (!cursor.has(rest) && !(await cursor.ensure(rest)))) return null;
    let product = 1;
    for (let dimension = 0; dimension < dimensions; dimension += 1) product *= cursor.uint64();
    weights += product;
    cursor.skip(4);
    leastBytes = Math.max(leastBytes, cursor.uint64() + Math.floor(product / 8));
  }
  return { weights, leastBytes };
}
