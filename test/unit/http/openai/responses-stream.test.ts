// Streams of OpenAI's responses: what the engine leaves out is added, whatever the chunks; what it sends itself stays.
import assert from "node:assert/strict";
import { test } from "node:test";
import { passThrough } from "../../../../src/http/openai/pass-through.ts";
import { completeResponses } from "../../../../src/http/openai/responses-stream.ts";
import type { Translator } from "../../../../src/http/proxy/generation.ts";
import { inBlocks } from "../../../support/line-blocks.ts";

/** As llama-server sends them (build 11669), shortened. */
const sent = [
  { type: "response.created", response: { id: "resp_1", status: "in_progress" } },
  { type: "response.output_item.added", item: { id: "rs_1", type: "reasoning", content: [] } },
  { type: "response.reasoning_text.delta", delta: "é", item_id: "rs_1" },
  { type: "response.output_item.added", item: { id: "fc_1", type: "function_call" } },
  { type: "response.function_call_arguments.delta", delta: "{}", item_id: "fc_1" },
  { type: "response.output_item.done", item: { id: "rs_1", type: "reasoning" } },
  { type: "response.completed", response: { id: "resp_1", model: "its own", created_at: 5, output: ["x"] } },
] as const;
const part = { type: "reasoning_text", text: "" };
const completed = [
  { ...sent[0], sequence_number: 0, response: { created_at: 7, model: "m", output: [], ...sent[0].response } },
  { ...sent[1], sequence_number: 1, output_index: 0 },
  {
    sequence_number: 2,
    output_index: 0,
    content_index: 0,
    type: "response.content_part.added",
    item_id: "rs_1",
    part,
  },
  { ...sent[2], sequence_number: 3, output_index: 0, content_index: 0 },
  { ...sent[3], sequence_number: 4, output_index: 1 },
  { ...sent[4], sequence_number: 5, output_index: 1 },
  { ...sent[5], sequence_number: 6, output_index: 0 },
  { ...sent[6], sequence_number: 7 },
];

function streamOf(events: readonly { readonly type: string }[]): Buffer {
  return Buffer.from(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""));
}

function translator(): Translator {
  const made = completeResponses(passThrough("responses"), "m", 7);
  assert.ok(made.begin("text/event-stream"));
  return made;
}

function eventsIn(text: string): unknown[] {
  const frames = text.split("\n\n");
  assert.equal(frames.pop(), "");
  return frames.map((frame) => {
    const [, type, data] = /^event: (.*)\ndata: (.*)$/.exec(frame) ?? [];
    const event = JSON.parse(data ?? "") as { type: string };
    assert.equal(event.type, type);
    return event;
  });
}

test("each event gets its number and its place, the response its model and date, a reasoning its part", () => {
  const bytes = streamOf(sent);
  for (let at = 0; at < bytes.length; at++) {
    const made = translator();
    const written = inBlocks([bytes.subarray(0, at), bytes.subarray(at)], (block) => String(made.lines(block)));
    assert.equal(made.end(written.rest), null);
    assert.deepEqual(eventsIn(written.made.join("")), completed);
    assert.equal(made.nextSequence?.(), completed.length);
  }
});

test("what the engine sends itself stays", () => {
  const event = { type: "response.content_part.done", sequence_number: 40, output_index: 9, content_index: 3 };
  assert.deepEqual(eventsIn(String(translator().lines(streamOf([event])))), [event]);
});

test("what is no event of theirs passes untouched", () => {
  for (const text of [': ping\n\ndata: {"error":{"message":"m"}}\n\n', "data: {broken\n", "data: [DONE]\n\n"])
    assert.equal(String(translator().lines(Buffer.from(text))), text);
  const whole = completeResponses(passThrough("responses"), "m", 7);
  assert.equal(whole.begin("application/json"), null);
  const body = '{"type":"x"}';
  assert.equal(String(whole.end(Buffer.from(body))), body);
});
