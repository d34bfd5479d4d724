// The event stream splitter, at every byte boundary.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createSseParser } from "../../../../src/http/proxy/sse.ts";

const encoder = new TextEncoder();

interface Parsed {
  readonly data: readonly string[];
  readonly garbage: readonly string[];
}

function parse(chunks: readonly Uint8Array[]): Parsed {
  const data: string[] = [];
  const garbage: string[] = [];
  const parser = createSseParser(
    (text) => data.push(text),
    (text) => garbage.push(text),
  );
  for (const chunk of chunks) {
    // The memory is used again at once, as a socket may do it.
    const lent = chunk.slice();
    parser.push(lent);
    lent.fill(0x2a);
  }
  parser.end();
  return { data, garbage };
}

/** The bytes cut at each single place, byte by byte, and whole. */
function* splits(bytes: Uint8Array): Generator<readonly Uint8Array[]> {
  yield [bytes];
  yield Array.from(bytes, (byte) => Uint8Array.of(byte));
  for (let at = 0; at <= bytes.length; at++) yield [bytes.subarray(0, at), bytes.subarray(at)];
}

const streams: readonly (readonly [
  name: string,
  stream: string,
  data: readonly string[],
  garbage: readonly string[],
])[] = [
  [
    "two events and the end",
    'data: {"a":1}\n\ndata: {"b":"é😀"}\n\ndata: [DONE]\n\n',
    ['{"a":1}', '{"b":"é😀"}', "[DONE]"],
    [],
  ],
  ["CRLF", "data: x\r\n\r\ndata: y\r\n\r\n", ["x", "y"], []],
  ["lone CR", "data: x\r\rdata: y\r\r", ["x", "y"], []],
  ["no space, two spaces, no colon", "data:x\n\ndata:  y\n\ndata\n\n", ["x", " y", ""], []],
  ["lines joined", "data: x\ndata: y\n\n", ["x\ny"], []],
  ["comments and other fields", ": ping\n\nevent: e\nid: 1\nretry: 5\ndata: x\n\n: ping\n\n", ["x"], []],
  ["byte order mark", "\ufeffdata: x\n\n", ["x"], []],
  [
    "the router's cut stream",
    'data: {"a":"ü"}\n\nproxy error: Failed to read connection',
    ['{"a":"ü"}'],
    ["proxy error: Failed to read connection"],
  ],
  ["the same with a line end", "data: x\n\nproxy error: gone\n", ["x"], ["proxy error: gone"]],
  ["cut inside an event", 'data: x\n\ndata: {"cho', ["x"], ['data: {"cho']],
  ["cut inside an event, with the router's text", 'data: {"choproxy error: gone', [], ['data: {"choproxy error: gone']],
  ["cut after a line", "data: x\n", ["x"], []],
  ["end mark without a line end", "data: x\n\ndata: [DONE]", ["x", "[DONE]"], []],
  ["JSON error body", '{"error":{"message":"no"}}', [], ['{"error":{"message":"no"}}']],
  ["empty", "", [], []],
  ["only line ends", "\n\n\r\n", [], []],
];

for (const [name, stream, data, garbage] of streams) {
  test(`split anywhere: ${name}`, () => {
    for (const chunks of splits(encoder.encode(stream))) assert.deepEqual(parse(chunks), { data, garbage });
  });
}

const line = fc.string({ unit: "grapheme", maxLength: 12 }).map((text) => text.replaceAll(/[\r\n]/g, ""));
const cuts = fc.array(fc.nat(400), { maxLength: 12 });

function cutAt(bytes: Uint8Array, places: readonly number[]): readonly Uint8Array[] {
  const sorted = [0, ...places.map((place) => Math.min(place, bytes.length)), bytes.length].sort((a, b) => a - b);
  return sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end));
}

test("random events come out as they went in, however the bytes are cut", () => {
  fc.assert(
    fc.property(
      fc.array(line, { maxLength: 8 }),
      fc.constantFrom("\n", "\r\n"),
      fc.boolean(),
      cuts,
      (events, end, ping, places) => {
        const stream = events.map((text) => `${ping ? `: ping${end}${end}` : ""}data: ${text}${end}${end}`).join("");
        assert.deepEqual(parse(cutAt(encoder.encode(stream), places)), { data: events, garbage: [] });
      },
    ),
    { numRuns: 1000 },
  );
});
