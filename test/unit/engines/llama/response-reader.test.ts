// Responses cut at any byte come out whole, and at their last byte; what is no response is refused.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { ResponseReader } from "../../../../src/engines/llama/response-reader.ts";

interface Read {
  readonly heads: (readonly [status: number, contentType: string])[];
  readonly body: Buffer[];
  /** Bytes after which it was whole; null: never. */
  whole: number | null;
  readonly reader: ResponseReader;
}

/** Read in pieces that end at these offsets, each from a buffer that is overwritten afterwards. */
function readIn(bytes: Buffer, cuts: readonly number[]): Read {
  const heads: Read["heads"] = [];
  const body: Buffer[] = [];
  const reader = new ResponseReader({
    onHead: (status, contentType) => void heads.push([status, contentType]),
    onBody: (part) => void body.push(Buffer.from(part)),
  });
  const read: Read = { heads, body, whole: null, reader };
  const shared = Buffer.alloc(bytes.length);
  let from = 0;
  for (const to of [...cuts.filter((at) => at < bytes.length).toSorted((a, b) => a - b), bytes.length]) {
    if (to <= from) continue;
    const piece = shared.subarray(0, bytes.copy(shared, 0, from, to));
    if (reader.read(piece)) read.whole ??= to;
    shared.fill(0);
    from = to;
  }
  return read;
}

const chunkOf = (data: Uint8Array, extension = ""): Buffer =>
  Buffer.concat([Buffer.from(`${data.length.toString(16)}${extension}\r\n`), data, Buffer.from("\r\n")]);

const parts = fc.array(fc.uint8Array({ minLength: 1, maxLength: 300 }), { maxLength: 20 });
const cuts = fc.array(fc.nat(4_000), { maxLength: 40 });

test("a chunked response, whatever is in its chunks and wherever it is cut", () => {
  fc.assert(
    fc.property(parts, cuts, fc.boolean(), (chunks, at, hasMore) => {
      const extension = hasMore ? "; a=b" : "";
      const trailer = hasMore ? "x-a: 1\r\n" : "";
      const bytes = Buffer.concat([
        Buffer.from("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Type: text/event-stream\r\n\r\n"),
        ...chunks.map((chunk) => chunkOf(chunk, extension)),
        Buffer.from(`0\r\n${trailer}\r\n`),
      ]);
      const { heads, body, whole, reader } = readIn(bytes, at);
      assert.deepEqual(heads, [[200, "text/event-stream"]]);
      assert.deepEqual(Buffer.concat(body), Buffer.concat(chunks));
      assert.deepEqual([whole, reader.isKept()], [bytes.length, true]);
    }),
  );
});

test("a response of known length, and one that ends with its connection", () => {
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 2_000 }), cuts, fc.boolean(), (data, at, isOpen) => {
      const length = isOpen ? "" : `content-length: ${data.length}\r\n`;
      const head = `HTTP/1.1 503 Service Unavailable\r\n${length}Content-type:application/json\r\n\r\n`;
      const bytes = Buffer.concat([Buffer.from(head), data]);
      const { heads, body, whole, reader } = readIn(bytes, at);
      assert.deepEqual(heads, [[503, "application/json"]]);
      assert.deepEqual(Buffer.concat(body), Buffer.from(data));
      assert.deepEqual(
        [whole, reader.ended(), reader.isKept()],
        isOpen ? [null, true, false] : [bytes.length, false, true],
      );
    }),
  );
});

test("a connection that the response closes takes no other request", () => {
  const { whole, reader } = readIn(
    Buffer.from("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nConnection: Close\r\n\r\n"),
    [],
  );
  assert.deepEqual([whole === null, reader.isKept()], [false, false]);
});

const sized = "HTTP/1.1 200 OK\r\ncontent-length: ";
const chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
for (const [text, why] of [
  ["SSH-2.0-OpenSSH_9.2\r\n\r\n", /no status/],
  [`${sized}-1\r\n\r\n`, /length is -1/],
  [`${sized}2\r\n\r\nabc`, /more comes/],
  [`${sized}0\r\n\r\na`, /more comes/],
  [`${chunked}xyz\r\n`, /no number/],
  [`${chunked}\r\n`, /missing/],
  [`${chunked}123456789\r\n`, /no number/],
  [`${chunked}2\r\nabc\r\n`, /longer than its size/],
  [`${chunked}0\r\n\r\nHTTP/1.1 200 OK`, /more comes/],
  [`HTTP/1.1 200 OK\r\na: ${"b".repeat(70_000)}`, /no end/],
] as const)
  test(`${JSON.stringify(text.slice(0, 70))} is no response, in one piece and byte by byte`, () => {
    const bytes = Buffer.from(text);
    const each = Array.from({ length: Math.min(bytes.length, 200) }, (_, at) => at + 1);
    for (const at of [[], each]) assert.throws(() => readIn(bytes, at), why);
  });
