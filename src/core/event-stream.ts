// Reading of server-sent events as they come, cut at any byte. Pure.

const lineFeed = 0x0a;

/** Cuts a stream into blocks of whole lines, and copies each byte once: a second copy of each block was a tenth of a fast stream. */
export class LineBlocks {
  #chunks: Buffer[] = [];
  /** The first of them, which have no line feed. */
  #searched = 0;

  push(chunk: Buffer): void {
    this.#chunks.push(chunk);
  }

  /** The whole lines so far; null: there is none. */
  block(): Buffer | null {
    for (let at = this.#chunks.length - 1; at >= this.#searched; at--) {
      const end = (this.#chunks[at]?.lastIndexOf(lineFeed) ?? -1) + 1;
      if (end > 0) return this.#cut(at, end);
    }
    this.#searched = this.#chunks.length;
    return null;
  }

  /** All that is left. */
  rest(): Buffer {
    return this.#joined(this.#chunks.splice(0));
  }

  #cut(at: number, end: number): Buffer {
    const whole = this.#chunks;
    const last = whole[at] ?? Buffer.alloc(0);
    this.#chunks = whole.splice(at + 1);
    if (end < last.length) {
      this.#chunks.unshift(last.subarray(end));
      whole[at] = last.subarray(0, end);
    }
    this.#searched = this.#chunks.length;
    return this.#joined(whole);
  }

  #joined(chunks: readonly Buffer[]): Buffer {
    const [first] = chunks;
    return chunks.length === 1 && first ? first : Buffer.concat(chunks);
  }
}

/** Hands on the data of the events in whole lines: llama-server writes that of each in one line. */
export function eachEvent(lines: Buffer, onData: (data: string) => void): void {
  for (const line of lines.toString().split("\n"))
    if (line.startsWith("data:")) onData(line.slice("data:".length).trim());
}
