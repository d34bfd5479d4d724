// An answer's chunks as a translator gets them.
import { LineBlocks } from "../../src/core/event-stream.ts";

/** What `each` makes of the blocks of whole lines, and the bytes after the last of them. */
export function inBlocks<T>(chunks: readonly Uint8Array[], each: (block: Buffer) => T): { made: T[]; rest: Buffer } {
  const blocks = new LineBlocks();
  const made = chunks.flatMap((chunk) => {
    const block = blocks.lines(chunk);
    return block ? [each(block)] : [];
  });
  return { made, rest: blocks.rest() };
}
