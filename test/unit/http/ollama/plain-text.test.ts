// Records whose texts are cut out of the engine's events are those that a parse of each event makes.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { GatewayError } from "../../../../src/core/errors.ts";
import { answerTranslator } from "../../../../src/http/ollama/answers.ts";
import { generateRecord } from "../../../../src/http/ollama/wire/chat-records.ts";
import { inBlocks } from "../../../support/line-blocks.ts";

const rest = { created: 1, id: "chatcmpl-1", object: "chat.completion.chunk" };
const event = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`;
const delta = (part: object, more: object = {}): string =>
  event({ choices: [{ finish_reason: null, index: 0, delta: part, ...more }], ...rest });
const ending = `${delta({}, { finish_reason: "stop" })}data: [DONE]\n\n`;

interface Said {
  readonly model: string;
  readonly text: string;
  readonly thinking: string;
  readonly isDone: boolean;
}

/** What the client reads, in blocks as they come; `null` for an answer that was cut. */
function records(blocks: readonly (string | Buffer)[], name = "m", asGenerate = false): readonly Said[] | null {
  const translator = answerTranslator({
    model: name,
    topLogprobs: 0,
    stream: true,
    read: (chunk) => chunk,
    write: (record) => (asGenerate ? generateRecord(record) : record),
  });
  const chunks = blocks.map((block) => Buffer.from(block));
  const { made, rest: left } = inBlocks(chunks, (block) => translator.lines(block));
  const last = translator.end(left);
  if (last instanceof GatewayError) return null;
  const text = Buffer.concat([...made, last].map((part) => Buffer.from(part ?? ""))).toString();
  return text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const { model, message, response, thinking, done } = JSON.parse(line) as {
        model: string;
        message?: { content: string; thinking?: string };
        response?: string;
        thinking?: string;
        done: boolean;
      };
      return {
        model,
        text: message?.content ?? response ?? "",
        thinking: message?.thinking ?? thinking ?? "",
        isDone: done,
      };
    });
}

const oddTexts = [
  "a",
  "é漢😀",
  "\n",
  '"',
  "\\",
  '\\"',
  "\u0000",
  "TEXT",
  '","done":true,"x":"',
  '"}}],"created":1',
  "",
];

test("odd texts, models and thoughts", () => {
  for (const kind of ["content", "reasoning_content"]) {
    for (const name of ["m", "é/TEXT:Q8_0", 'a "b"']) {
      for (const asGenerate of [false, true]) {
        const expected = [...oddTexts, ...oddTexts.toReversed()];
        const blocks = [...expected.map((text) => delta({ [kind]: text })), ending];
        const said = expected
          .filter((text) => text !== "")
          .map((text) => ({
            model: name,
            text: kind === "content" ? text : "",
            thinking: kind === "content" ? "" : text,
            isDone: false,
          }));
        const whole = [...said, { model: name, text: "", thinking: "", isDone: true }];
        assert.deepEqual(records(blocks, name, asGenerate), whole);
        // The first event alone teaches the shape, the others come at once.
        assert.deepEqual(records([delta({ [kind]: "" }), blocks.join("")], name, asGenerate), whole);
        // One that ends in an empty text, which makes no record.
        const ended = [delta({ [kind]: "a" }), delta({ [kind]: "b" }) + delta({ [kind]: "" }), ending];
        assert.equal(records(ended, name, asGenerate)?.length, 3);
      }
    }
  }
});

test("an event that has more than a text among those that have not", () => {
  const plain = delta({ content: "a" }).repeat(3);
  const said = { model: "m", text: "a", thinking: "", isDone: false };
  const last = { model: "m", text: "", thinking: "", isDone: true };
  for (const [other, more] of [
    [delta({ content: "b", reasoning_content: "c" }), [{ ...said, text: "b", thinking: "c" }]],
    [delta({ content: "b" }, { index: 1 }), []],
    [event({ choices: [], ...rest }), []],
    [": ping\n\n", []],
    [delta({ content: "b" }).replaceAll("\n", "\r\n"), [{ ...said, text: "b" }]],
  ] as const) {
    const expected = [said, said, said, ...more, said, said, said, last];
    assert.deepEqual(records([plain, other + plain, ending]), expected, other);
    assert.deepEqual(records([plain + other, plain, ending]), expected, other);
    assert.deepEqual(records([plain, other, plain, ending]), expected, other);
  }
});

test("nothing follows a failure, and a cut stream is one", () => {
  const plain = delta({ content: "a" });
  for (const wrong of ['data: {"choices"\n\n', event({ error: { message: "no" } })]) {
    assert.equal(records([plain, plain, wrong + plain, plain, ending]), null);
    assert.equal(records([plain, wrong, plain, plain, ending]), null);
  }
  assert.equal(records([plain, plain, plain.slice(0, -10)]), null);
  // A string that no JSON has.
  for (const text of ["\\x", "\\u12", "\t", "\\"])
    assert.equal(records([plain, plain, plain.replace('"a"', `"${text}"`), ending]), null, text);
});

test("a huge text, and a space that JSON does not have", () => {
  const huge = "x".repeat(32 << 20);
  assert.equal(records([delta({ content: huge }), ending])?.[0]?.text.length, huge.length);
  const spaced = delta({ content: "a" }).replace("data: ", "data: \u00a0");
  assert.deepEqual(
    records([spaced, spaced, ending])?.map(({ text }) => text),
    ["a", "a", ""],
  );
});

test("random texts come out as they went in, however the bytes are cut", () => {
  fc.assert(
    fc.property(
      fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 6 }), { maxLength: 12 }),
      fc.array(fc.nat(2_000), { maxLength: 12 }),
      (texts, places) => {
        const bytes = Buffer.from(texts.map((text) => delta({ content: text })).join("") + ending);
        const sorted = [0, ...places.map((place) => Math.min(place, bytes.length)), bytes.length].sort((a, b) => a - b);
        const blocks = sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end));
        const said = records(blocks)?.map(({ text }) => text);
        assert.deepEqual(said, [...texts, ""]);
      },
    ),
    { numRuns: 500 },
  );
});
