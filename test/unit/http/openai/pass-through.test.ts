// Streams of the compatible family: whole or cut, at every byte boundary; what was taken passes on, and nothing else.
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { passThrough, type StreamKind } from "../../../../src/http/openai/pass-through.ts";
import type { Translator } from "../../../../src/http/proxy/generation.ts";
import { inBlocks } from "../../../support/line-blocks.ts";

interface Outcome {
  readonly text: string;
  readonly failed: boolean;
}

function pass(kind: StreamKind, chunks: readonly Uint8Array[]): Outcome {
  const translator = passThrough(kind);
  assert.ok(translator.begin("text/event-stream"));
  const { made, rest } = inBlocks(chunks, (block) => written(translator, block));
  const last = translator.end(rest);
  const failed = last instanceof Error;
  return {
    text: [...made, failed ? "" : (last ?? "")].map((part) => Buffer.from(part).toString()).join(""),
    failed,
  };
}

/** The block's buffer is used for something else after it. */
function written(translator: Translator, block: Buffer): string {
  const text = String(translator.lines(block) ?? "");
  block.fill("?");
  return text;
}

function* splits(bytes: Buffer): Generator<readonly Uint8Array[]> {
  yield [bytes];
  yield Array.from(bytes, (byte) => Uint8Array.of(byte));
  for (let at = 1; at < bytes.length; at++) yield [bytes.subarray(0, at), bytes.subarray(at)];
}

const whole: readonly (readonly [kind: StreamKind, stream: string])[] = [
  ["done", 'data: {"a":"é"}\n\ndata: [DONE]\n\n'],
  ["done", 'data: {"a":1}\n\ndata: [DONE]'],
  ["done", 'data: {"error":{"message":"m"}}\n\n'],
  [
    "responses",
    'event: response.created\ndata: {}\n\nevent: response.completed\ndata: {"type":"response.completed"}\n\n',
  ],
  ["responses", "event: response.incomplete\ndata: {}\n\n"],
  ["responses", 'event: response.created\ndata: {}\n\ndata: {"error":{"message":"m"}}\n\n'],
  ["messages", 'event: message_start\r\ndata: {}\r\n\r\nevent: message_stop\r\ndata: {"type":"message_stop"}\r\n\r\n'],
  ["messages", "event: message_stop\ndata: {}\n\n: ping\n\n"],
  ["messages", 'event: error\ndata: {"message":"m"}\n\n'],
  ["llama", 'data: {"content":"a","stop":false}\n\ndata: {"content":"","stop":true,"model":"m"}\n\n'],
];

for (const [kind, stream] of whole) {
  test(`interface 4, Chat and model list: a whole stream passes untouched: ${kind} ${stream.slice(-40).trim()}`, () => {
    for (const chunks of splits(Buffer.from(stream)))
      assert.deepEqual(pass(kind, chunks), { text: stream, failed: false });
  });
}

const timings = '"timings":{"cache_n":2,"prompt_n":1,"predicted_n":4}';

const counted: readonly (readonly [what: string, kind: StreamKind, stream: string])[] = [
  ["the engine's timings", "done", `data: {"a":1}\n\ndata: {"b":2,${timings}}\n\ndata: [DONE]\n\n`],
  [
    "the usage that was asked for",
    "done",
    'data: {"a":1}\n\ndata: {"usage":{"completion_tokens":4,"prompt_tokens":3}}\n\ndata: [DONE]\n\n',
  ],
  ["a response", "responses", `event: x\ndata: {}\n\nevent: response.completed\ndata: {${timings}}\n\n`],
  [
    "a message, the prompt's in its first event",
    "messages",
    'event: message_start\ndata: {"usage":{"cache_read_input_tokens":2,"input_tokens":1,"output_tokens":0}}\n\n' +
      'event: x\ndata: {}\n\nevent: message_delta\ndata: {"usage":{"output_tokens":4}}\n\nevent: message_stop\ndata: {}\n\n',
  ],
  ["a completion of llama.cpp's", "llama", `data: {"stop":false}\n\ndata: {"stop":true,${timings}}\n\n`],
];

for (const [what, kind, stream] of counted)
  test(`tokens are counted wherever a stream is cut: ${what}`, () => {
    const tokens = (chunks: readonly Uint8Array[], computes?: boolean): readonly number[] => {
      const translator = passThrough(kind, computes);
      translator.begin("text/event-stream");
      const { rest } = inBlocks(chunks, (block) => written(translator, block));
      assert.ok(!(translator.end(rest) instanceof Error));
      const found: number[] = [];
      translator.count?.({ addTokens: (...counts) => void found.push(...counts) });
      return found;
    };
    // Anthropic's first event is read in one piece: the engine sends it alone.
    const [, , ...cuts] = splits(Buffer.from(stream));
    for (const chunks of kind === "messages" ? cuts.slice(stream.indexOf("\n\n")) : splits(Buffer.from(stream)))
      assert.deepEqual(tokens(chunks), [3, 4]);
    assert.deepEqual(tokens([Buffer.from(stream)], false), [], "of an answer that computes nothing");
  });

const cut: readonly (readonly [kind: StreamKind, kept: string, lost: string])[] = [
  ["done", "", ""],
  ["done", 'data: {"a":1}\n\n', 'data: {"b'],
  ["done", 'data: {"content":"data: {\\"error\\""}\n\n', ""],
  ["responses", "event: response.created\ndata: {}\n\n", "event: response.comp"],
  ["responses", "event: response.completed\n", 'data: {"type":"resp'],
  ["responses", 'event: response.completed\ndata: {"type":"response.completed"}\n', ""],
  ["messages", "event: message_delta\ndata: {}\n\n", ""],
  ["messages", "event: message_stop\n", ""],
  ["messages", 'data: {"text":"\\nevent: message_stop"}\n\n', ""],
  // Anthropic's clients take no notice of an event without a name: it has told them nothing.
  ["messages", 'data: {"error":{"message":"m"}}\n\n', ""],
  ["llama", 'data: {"content":"\\"stop\\":true","stop":false}\n\n', 'data: {"stop":true'],
];

for (const [kind, kept, lost] of cut) {
  test(`interface 4, Chat and model list: a cut stream is known as one: ${kind} ${JSON.stringify(kept + lost).slice(-50)}`, () => {
    for (const chunks of splits(Buffer.from(kept + lost))) {
      // Half a line would take the error frame after it for its other half.
      assert.deepEqual(pass(kind, chunks), { text: kept, failed: true });
    }
  });
}

test("an answer that is no stream is kept until it is whole", () => {
  const translator = passThrough("done");
  assert.equal(translator.begin("application/json"), null);
  assert.equal(translator.lines(Buffer.from('{"a":\n')), null);
  assert.equal(String(translator.end(Buffer.from("1}"))), '{"a":\n1}');
});

const ends: readonly (readonly [stream: string, done: boolean])[] = [
  ['data: {"a":1}\n\ndata: [DONE]\n\n', true],
  ['data: {"a":1}\n\ndata: [DONE]', true],
  ["data: x\r\n\r\ndata: [DONE]\r\n\r\n", true],
  ["data: [DONE]\n\n", true],
  ["data:[DONE]\n\n", true],
  ["x\ndata:[DONE]", true],
  [`data: [DONE]${" \n\t\r\n".repeat(20)}`, true],
  [`data: x${"\n".repeat(40)}data: [DONE]\n\n`, true],
  ["", false],
  ["\n\n", false],
  ["[DONE]", false],
  ["data:", false],
  ["data: [DONE", false],
  ["data:  [DONE]\n\n", false],
  ["data : [DONE]\n\n", false],
  [`data:${" ".repeat(40)}[DONE]`, false],
  ["data: [\nDONE]", false],
  ["xdata: [DONE]\n\n", false],
  ["x data: [DONE]\n\n", false],
  ['data: {"content":"data: [DONE]"}\n\n', false],
  ["data: [DONE]\n\ndata: x\n\n", false],
  ["data: [DONE]\n\nproxy error: Failed to read connection", false],
  ['data: {"a":1}\n\nproxy error: Failed to read connection', false],
];

for (const [stream, done] of ends) {
  test(`end watch: ${JSON.stringify(stream).slice(0, 60)} is ${done ? "whole" : "cut"}`, () => {
    for (const chunks of splits(Buffer.from(stream))) assert.equal(pass("done", chunks).failed, !done);
  });
}

test("the end watch agrees with the whole text, however the bytes are cut", () => {
  const piece = fc.constantFrom("data: [DONE]", "data:[DONE]", "data: x", "\n\n", "\r\n", " ", "[DONE]", "data:", "é");
  const cuts = fc.array(fc.nat(100), { maxLength: 12 });
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 9 }), cuts, (pieces, places) => {
      const bytes = Buffer.from(pieces.join(""));
      const sorted = [0, ...places.map((place) => Math.min(place, bytes.length)), bytes.length].sort((x, y) => x - y);
      const chunks = sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end));
      assert.equal(pass("done", chunks).failed, !/(^|[\r\n])data: ?\[DONE\][ \t\r\n]*$/.test(bytes.toString()));
    }),
    { numRuns: 3000 },
  );
});
