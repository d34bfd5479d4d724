// Reading of server-sent events as they come, cut at any byte. Pure.

const [lineFeed, space, quote, backslash, letterU] = [0x0a, 0x20, 0x22, 0x5c, 0x75] as const;

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

/** What stands before the first text, between two, and after the last. */
export interface Frame {
  readonly before: Buffer;
  readonly between: Buffer;
  readonly after: Buffer;
}

/** What is before and after a text, in latin1. */
export function frameOf(before: string, after: string): Frame {
  const [first, between, last] = [before, after + before, after].map((part) => Buffer.from(part, "latin1"));
  return { before: first, between, after: last } as Frame;
}

/** Of what JSON escapes. */
const escapes = Buffer.from('"\\/bfnrt');

/** Events that differ in one text of their JSON, with another frame around each text; null if the block has any other event. */
export function reframed(block: Buffer, { before, between, after }: Frame, wanted: Frame): Buffer | null {
  const end = block.length - after.length;
  if (end <= before.length || !hasAt(block, 0, before) || !hasAt(block, end, after)) return null;
  const most = Math.ceil(block.length / between.length) * wanted.between.length + block.length;
  const made = Buffer.allocUnsafe(most + wanted.before.length + wanted.after.length);
  let length = wanted.before.copy(made);
  for (let at = before.length; ; at += between.length) {
    const copied = copyText(block, at, made, length);
    at += copied;
    length += copied;
    if (copied === 0 || (at !== end && !hasAt(block, at, between))) return null;
    if (at === end) break;
    length += wanted.between.copy(made, length);
  }
  return made.subarray(0, length + wanted.after.copy(made, length));
}

function hasAt(block: Buffer, at: number, part: Buffer): boolean {
  return block.compare(part, 0, part.length, at, Math.min(block.length, at + part.length)) === 0;
}

/** Copies the inside of a JSON string; how many bytes. 0: it is none, or empty, which makes no record. */
function copyText(block: Buffer, from: number, made: Buffer, to: number): number {
  for (let at = from; at < block.length; at++) {
    const byte = block[at] as number;
    if (byte === quote) return at - from;
    if (byte < space || (byte === backslash && !isEscape(block, at + 1))) return 0;
    made[to + at - from] = byte;
    if (byte === backslash) made[to + ++at - from] = block[at] as number;
  }
  return 0;
}

function isEscape(block: Buffer, at: number): boolean {
  if (block[at] === letterU) return /^[\da-f]{4}$/i.test(block.toString("latin1", at + 1, at + 5));
  return escapes.includes(block[at] as number);
}
