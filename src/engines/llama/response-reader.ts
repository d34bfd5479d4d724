// Reads the HTTP responses of a model's process, cut at any byte. llama-server sends one chunk per event: their frames are removed by
// moving their data together in the buffer that was read into, so a fast stream costs no object per event.

export interface ResponseSink {
  onHead(status: number, contentType: string): void;
  /** `bytes`: valid until it returns. */
  onBody(bytes: Buffer): void;
}

/** Bytes of status line and headers. */
const mostHead = 64 * 1024;

const [lineFeed, carriageReturn, semicolon] = [0x0a, 0x0d, 0x3b] as const;

/**
 * What the next byte belongs to. `sized`: a body of known length; `open`: one that ends with the connection; the others are parts of a
 * chunked one.
 */
type Part = "head" | "sized" | "open" | "size" | "extension" | "data" | "dataEnd" | "trailer" | "over";

export class ResponseReader {
  readonly #sink: ResponseSink;
  #part: Part = "head";
  #head = "";
  /** Bytes of the body, or of the chunk, that are still to come. */
  #left = 0;
  /** Digits of a chunk's size, or bytes of a trailer's line. */
  #inLine = 0;
  #isKept = true;

  constructor(sink: ResponseSink) {
    this.#sink = sink;
  }

  /** The connection takes another request after it. */
  isKept(): boolean {
    return this.#isKept;
  }

  /** True: the response is whole. `bytes` are read before it returns, and may be changed. Throws on what is no HTTP response. */
  read(bytes: Buffer): boolean {
    const at = this.#part === "head" ? this.#readHead(bytes) : 0;
    if (at < bytes.length) this.#readBody(bytes, at);
    return this.#part === "over";
  }

  /** The connection has ended. True: so the response is whole. */
  ended(): boolean {
    return this.#part === "open";
  }

  /** Returns the offset of the body. */
  #readHead(bytes: Buffer): number {
    const known = this.#head.length;
    this.#head += bytes.toString("latin1", 0, mostHead);
    const end = this.#head.indexOf("\r\n\r\n", Math.max(0, known - 3));
    if (end < 0) {
      if (this.#head.length >= mostHead) throw malformed("its headers have no end");
      return bytes.length;
    }
    this.#begin(this.#head.slice(0, end).toLowerCase());
    return end + 4 - known;
  }

  /** `head`: in lower case. */
  #begin(head: string): void {
    const status = /^http\/1\.1 (\d{3})/.exec(head)?.[1];
    if (status === undefined) throw malformed("it has no status");
    const length = valueOf(head, "content-length");
    this.#isKept = valueOf(head, "connection") !== "close";
    if (valueOf(head, "transfer-encoding") === "chunked") this.#part = "size";
    else if (length === "") [this.#part, this.#isKept] = ["open", false];
    else {
      this.#left = Number(length);
      if (!/^\d+$/.test(length)) throw malformed(`its length is ${length}`);
      this.#part = this.#left === 0 ? "over" : "sized";
    }
    this.#sink.onHead(Number(status), valueOf(head, "content-type"));
  }

  #readBody(bytes: Buffer, from: number): void {
    if (this.#part === "over") throw malformed("more comes than its length");
    if (this.#part !== "sized" && this.#part !== "open") return this.#readChunks(bytes, from);
    if (this.#part === "sized" && (this.#left -= bytes.length - from) <= 0) {
      if (this.#left < 0) throw malformed("more comes than its length");
      this.#part = "over";
    }
    this.#sink.onBody(bytes.subarray(from));
  }

  #readChunks(bytes: Buffer, from: number): void {
    let length = from;
    for (let at = from; at < bytes.length; ) {
      if (this.#part === "data") {
        const end = Math.min(at + this.#left, bytes.length);
        if (length !== at) bytes.copyWithin(length, at, end);
        length += end - at;
        this.#left -= end - at;
        at = end;
        if (this.#left === 0) this.#part = "dataEnd";
      } else this.#frame(bytes[at++] as number);
    }
    if (length > from) this.#sink.onBody(bytes.subarray(from, length));
  }

  /** A byte that is not data. */
  #frame(byte: number): void {
    if (this.#part === "over") throw malformed("more comes after its last chunk");
    if (this.#part === "trailer") this.#endTrailer(byte);
    else if (this.#part === "dataEnd") {
      if (byte === lineFeed) this.#part = "size";
      else if (byte !== carriageReturn) throw malformed("a chunk is longer than its size");
    } else if (byte === lineFeed) this.#endSize();
    else if (this.#part === "size" && byte !== carriageReturn) this.#readSize(byte);
  }

  #readSize(byte: number): void {
    if (byte === semicolon) this.#part = "extension";
    else {
      const digit = digits.indexOf(byte | 0x20);
      if (digit < 0 || ++this.#inLine > mostDigits) throw malformed("the size of a chunk is no number");
      this.#left = this.#left * 16 + digit;
    }
  }

  #endSize(): void {
    if (this.#inLine === 0) throw malformed("the size of a chunk is missing");
    this.#inLine = 0;
    this.#part = this.#left === 0 ? "trailer" : "data";
  }

  /** Lines up to an empty one. */
  #endTrailer(byte: number): void {
    if (byte === lineFeed && this.#inLine === 0) this.#part = "over";
    else if (byte === lineFeed) this.#inLine = 0;
    else if (byte !== carriageReturn) this.#inLine++;
  }
}

/** Empty: there is none. */
function valueOf(head: string, name: string): string {
  const at = head.indexOf(`\r\n${name}:`);
  if (at < 0) return "";
  const from = at + name.length + 3;
  const end = head.indexOf("\r\n", from);
  return head.slice(from, end < 0 ? undefined : end).trim();
}

/** Lower case: a digit has that bit, too. */
const digits = Buffer.from("0123456789abcdef");
const mostDigits = 8;

function malformed(why: string): Error {
  return new Error(`not an HTTP response: ${why}`);
}
