// The event stream splitter, at every byte boundary.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { eachEvent, LineBlocks } from "../../../src/core/event-stream.ts";
import { inBlocks } from "../../support/line-blocks.ts";

const encoder = new TextEncoder();

function parse(chunks: readonly Uint8Array[]): readonly string[] {
  const data: string[] = [];
  inBlocks(chunks, (block) => eachEvent(block, (text) => data.push(text)));
  return data;
}

/** The bytes cut at each single place, byte by byte, and whole. */
function* splits(bytes: Uint8Array): Generator<readonly Uint8Array[]> {
  yield [bytes];
  yield Array.from(bytes, (byte) => Uint8Array.of(byte));
  for (let at = 0; at <= bytes.length; at++) yield [bytes.subarray(0, at), bytes.subarray(at)];
}

const streams: readonly (readonly [name: string, stream: string, data: readonly string[]])[] = [
  [
    "two events and the end",
    'data: {"a":1}\n\ndata: {"b":"é😀"}\n\ndata: [DONE]\n\n',
    ['{"a":1}', '{"b":"é😀"}', "[DONE]"],
  ],
  ["CRLF", "data: x\r\n\r\ndata: y\r\n\r\n", ["x", "y"]],
  ["no space", "data:x\n\n", ["x"]],
  ["a line separator in a text", 'data: "\u2028"\n\n', ['"\u2028"']],
  ["comments and other fields", ": ping\n\nevent: e\nid: 1\nretry: 5\ndata: x\n\n: ping\n\n", ["x"]],
  ["cut inside an event", 'data: x\n\ndata: {"cho', ["x"]],
  ["cut after a line", "data: x\n", ["x"]],
  ["what is no event", '{"error":{"message":"no"}}\n', []],
  ["empty", "", []],
  ["only line ends", "\n\n\r\n", []],
];

for (const [name, stream, data] of streams) {
  test(`split anywhere: ${name}`, () => {
    for (const chunks of splits(encoder.encode(stream))) assert.deepEqual(parse(chunks), data);
  });
}

const line = fc.string({ unit: "grapheme", maxLength: 12 }).map((text) => JSON.stringify(text));
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
        assert.deepEqual(parse(cutAt(encoder.encode(stream), places)), events);
      },
    ),
    { numRuns: 1000 },
  );
});

test("large blocks are right when they are handed out, and stay so until they are free", () => {
  const lineBytes = fc.array(fc.integer({ min: 1, max: 60_000 }), { minLength: 1, maxLength: 12 });
  const chunkBytes = fc.array(fc.integer({ min: 1, max: 65_536 }), { minLength: 1, maxLength: 20 });
  fc.assert(
    fc.property(lineBytes, chunkBytes, fc.boolean(), (lines, chunks, isFree) => {
      const bytes = Buffer.concat(
        lines.map((length, at) => Buffer.from(`${String.fromCodePoint(65 + at).repeat(length)}\n`)),
      );
      const blocks = new LineBlocks();
      const handedOut: Buffer[] = [];
      const seen: Buffer[] = [];
      const shared = Buffer.alloc(65_536);
      for (let at = 0, turn = 0; at < bytes.length; turn++) {
        const length = bytes.copy(shared, 0, at, at + (chunks[turn % chunks.length] ?? 1));
        const block = blocks.lines(shared.subarray(0, length), isFree);
        at += length;
        if (!block) continue;
        handedOut.push(block);
        seen.push(Buffer.from(block));
      }
      assert.ok(Buffer.concat([...seen, blocks.rest()]).equals(bytes));
      if (!isFree) assert.ok(Buffer.concat(handedOut).equals(bytes));
    }),
    { numRuns: 50 },
  );
});
