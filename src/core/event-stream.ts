// Reading of server-sent events as they come, cut at any byte. Pure.

const lineFeed = 0x0a;

/**
 * Bytes between which blocks share a buffer: V8 counts buffers as old memory, and marked its heap after every 40 MB of fast streams,
 * for a third of their processor time.
 */
const [leastShared, mostShared] = [1 << 14, 1 << 17] as const;

/** Cuts a stream into blocks of whole lines, and copies each byte once. The chunks that it is given may change afterwards. */
export class LineBlocks {
  /** Copies of what is not handed out yet. */
  #kept: Buffer[] = [];
  #shared: Buffer | null = null;

  /** The whole lines so far; null: there is none. `isFree`: the blocks that came before are read no more. */
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
    if (length < leastShared || length > mostShared) return Buffer.concat(parts, length);
    if (!isFree || !this.#shared) this.#shared = Buffer.allocUnsafeSlow(mostShared);
    let at = 0;
    for (const part of parts) {
      this.#shared.set(part, at);
      at += part.length;
    }
    return this.#shared.subarray(0, length);
  }
}

/** Hands on the data of the events in whole lines: llama-server writes that of each in one line. */
export function eachEvent(lines: Buffer, onData: (data: string) => void): void {
  for (const line of lines.toString().split("\n"))
    if (line.startsWith("data:")) onData(line.slice("data:".length).trim());
}
