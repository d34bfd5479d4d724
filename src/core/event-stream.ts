// Reading of server-sent events as they come, cut at any byte. Pure.

const lineFeed = 0x0a;

/**
 * Bytes from which a block's buffer is used again: V8 counts buffers as old memory, and marked its heap after every 40 MB of fast
 * streams, for a third of their processor time.
 */
const largeBlock = 1 << 14;

/** Cuts a stream into blocks of whole lines, and copies each byte once. The chunks that it is given may change afterwards. */
export class LineBlocks {
  /** Copies of what is not handed out yet. */
  #kept: Buffer[] = [];
  #large = Buffer.alloc(0);

  /** The whole lines so far; null: there is none. `isFree`: nobody reads the blocks that came before. */
  lines(chunk: Uint8Array, isFree = false): Buffer | null {
    const end = chunk.lastIndexOf(lineFeed) + 1;
    if (end === 0) {
      this.keep(chunk);
      return null;
    }
    const block = this.#joined([...this.#kept, chunk.subarray(0, end)], isFree);
    this.#kept = [];
    if (end < chunk.length) this.keep(chunk.subarray(end));
    return block;
  }

  /** Whatever lines it has. */
  keep(chunk: Uint8Array): void {
    this.#kept.push(Buffer.from(chunk));
  }

  /** All that is left. */
  rest(): Buffer {
    return Buffer.concat(this.#kept.splice(0));
  }

  #joined(parts: readonly Uint8Array[], isFree: boolean): Buffer {
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    if (length < largeBlock) return Buffer.concat(parts, length);
    if (!isFree || length > this.#large.length) this.#large = Buffer.allocUnsafeSlow(2 ** Math.ceil(Math.log2(length)));
    let at = 0;
    for (const part of parts) {
      this.#large.set(part, at);
      at += part.length;
    }
    return this.#large.subarray(0, length);
  }
}

/** Hands on the data of the events in whole lines: llama-server writes that of each in one line. */
export function eachEvent(lines: Buffer, onData: (data: string) => void): void {
  for (const line of lines.toString().split("\n"))
    if (line.startsWith("data:")) onData(line.slice("data:".length).trim());
}
