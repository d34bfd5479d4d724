// Records whose texts are cut out of the engine's events are those that a parse of each event makes.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { GatewayError } from "../../../../src/core/errors.ts";
import { eachEvent } from "../../../../src/core/event-stream.ts";
import { parseJson } from "../../../../src/core/json.ts";
import { answerTranslator } from "../../../../src/http/ollama/answers.ts";
import { type ChatRecord, createChatRecords, generateRecord } from "../../../../src/http/ollama/wire/chat-records.ts";
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

test("each block has its own time, whatever the model is called", (t) => {
  t.mock.timers.enable({ apis: ["Date"], now: 0 });
  const model = "m 1970-01-01T00:00:00.000Z";
  const read = (chunk: unknown): unknown => chunk;
  const translator = answerTranslator({ model, topLogprobs: 0, stream: true, read, write: (record) => record });
  const times = ["a", "b", "c"].map((text) => {
    t.mock.timers.tick(1000);
    const made = translator.lines(Buffer.from(delta({ content: text }).repeat(2)));
    const lines = Buffer.from(made ?? "")
      .toString()
      .trim()
      .split("\n");
    return lines.map((line) => Object.values(JSON.parse(line) as Record<string, unknown>).slice(0, 2));
  });
  const seconds = ["01", "02", "03"].map((second) => [model, `1970-01-01T00:00:${second}.000Z`]);
  assert.deepEqual(
    times,
    seconds.map((each) => [each, each]),
  );
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

const texts = fc.oneof(
  fc.constantFrom(...oddTexts, "\u007f\u0085\u2028", "data: {}\n\n", "x".repeat(300)),
  fc.string({ unit: "grapheme", maxLength: 6 }),
);
/** As JSON may have them: as they are, or in escapes. */
const escaped = (json: string): string =>
  json.replaceAll(/[^\0-~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
const token = (text: string): object => ({ id: 4, token: text, logprob: -1, bytes: [1], top_logprobs: [] });
const call = (text: string): object => ({ tool_calls: [{ index: 0, function: { name: "f", arguments: text } }] });
const others = [
  (text: string) => delta({ content: text, reasoning_content: text }),
  (text: string) => delta({ role: "assistant", content: text }),
  (text: string) => delta({ content: text }, { logprobs: { content: [token(text)] } }),
  (text: string) => delta({ content: text }, { index: 1 }),
  (text: string) => delta({ content: text }, { content: text }),
  (text: string) => delta(call(text)),
  (text: string) => event({ choices: [{ index: 0, delta: { content: text } }], content: text, ...rest }),
  (text: string) => event({ choices: [], usage: { prompt_tokens: text.length, completion_tokens: 1 }, ...rest }),
  (text: string) => event({ choices: [{ index: 0, delta: { content: text } }], timings: { prompt_n: 1 } }),
  (text: string) => event({ choices: [{ index: 0, delta: { content: text } }], usage: null, created: 2 }),
  (text: string) => event({ content: text }),
  (text: string) => delta({ content: text }).replaceAll("\n", "\r\n"),
  (text: string) => delta({ content: text }).replace("\n\n", "\n"),
  (text: string) => delta({ content: text }).replace("data: ", "data:"),
  () => delta({ content: 1 }),
  () => delta({ content: null }),
  () => ": ping\n\n",
  () => "event: x\n",
  () => delta({}, { finish_reason: "stop" }),
];
const events = fc.oneof(
  { weight: 4, arbitrary: texts.map((text) => delta({ content: text })) },
  { weight: 2, arbitrary: texts.map((text) => delta({ reasoning_content: text })) },
  { weight: 1, arbitrary: texts.map((text) => escaped(delta({ content: text }))) },
  { weight: 3, arbitrary: fc.tuple(fc.constantFrom(...others), texts).map(([make, text]) => make(text)) },
);
/** Rarely: they end the answer. */
const wrong = fc.constantFrom(
  'data: {"choices"\n\n',
  delta({ content: "a" }).replace('"a"', '"\\x"'),
  event({ error: {} }),
);

/** All of the records but their times; an error as its message. */
function comparable(lines: string | Buffer, end: unknown): unknown {
  const timeless = (name: string, value: unknown): unknown => (/_at$|_duration$/.test(name) ? undefined : value);
  const records = lines
    .toString()
    .split("\n")
    .filter((line) => line !== "");
  return [
    ...records.map((line): unknown => JSON.parse(line, timeless)),
    end instanceof GatewayError ? end.message : null,
  ];
}

test("random events make the records that a parse of each makes, however the bytes are cut", () => {
  fc.assert(
    fc.property(
      fc.array(events, { maxLength: 16 }),
      fc.option(wrong, { nil: "", freq: 8 }),
      fc.array(events, { maxLength: 4 }),
      fc.array(fc.nat(4_000), { maxLength: 12 }),
      fc.constantFrom("m", 'é/TEXT "$1"'),
      fc.boolean(),
      (first, broken, second, places, model, asGenerate) => {
        const bytes = Buffer.from([...first, broken, ...second, ending].join(""));
        const write = (record: ChatRecord): object => (asGenerate ? generateRecord(record) : record);
        const plain = createChatRecords({ model, topLogprobs: 0, createdAt: () => "", now: () => 0 });
        const expected: ChatRecord[] = [];
        eachEvent(bytes, (data) => {
          if (data !== "[DONE]")
            expected.push(...plain.push(parseJson(data) ?? { error: "the engine sent what is no JSON" }));
        });
        const last = plain.end();
        if (!(last instanceof GatewayError)) expected.push(last);

        const translator = answerTranslator({ model, topLogprobs: 0, stream: true, read: (chunk) => chunk, write });
        const { made, rest: left } = inBlocks(cutAt(bytes, places), (block) => translator.lines(block));
        const end = translator.end(left);
        const text = Buffer.concat(
          [...made, end instanceof GatewayError ? "" : end].map((part) => Buffer.from(part ?? "")),
        );
        assert.deepEqual(
          comparable(text, end),
          comparable(expected.map((record) => JSON.stringify(write(record))).join("\n"), last),
        );
      },
    ),
    { numRuns: 1_000 },
  );
});

function cutAt(bytes: Buffer, places: readonly number[]): readonly Buffer[] {
  const sorted = [0, ...places.map((place) => Math.min(place, bytes.length)), bytes.length].sort((a, b) => a - b);
  return sorted.slice(1).map((end, index) => bytes.subarray(sorted[index], end));
}
