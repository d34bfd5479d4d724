// Recorded chat completion streams become the records that Ollama's clients read.

import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../../../src/core/errors.ts";
import {
  type ChatRecord,
  type ChatRecords,
  chatEnd,
  createChatRecords,
  merged,
} from "../../../../src/http/ollama/wire/chat-records.ts";

const time = "2026-02-03T04:05:06Z";

/** A clock that is 100 ms after the request at the first chunk and 350 ms after it at the end. */
function records(): ChatRecords {
  const times = [1000, 1100, 1350];
  return createChatRecords({ model: "m", createdAt: () => time, now: () => times.shift() ?? 1350, topLogprobs: 0 });
}

/** A failure stands for the last record. */
function run(chunks: readonly unknown[]): readonly (ChatRecord | GatewayError)[] {
  const stream = records();
  return [...chunks.flatMap((chunk) => stream.push(chunk)), stream.end()];
}

function failed(message: string): GatewayError {
  return new GatewayError("upstream_failed", message);
}

function delta(part: object, more: object = {}): object {
  return {
    choices: [{ index: 0, delta: part, finish_reason: null, ...more }],
    created: 1,
    id: "chatcmpl-1",
    object: "chat.completion.chunk",
  };
}

function finish(reason: string): object {
  return delta({}, { finish_reason: reason });
}

const usageChunk = {
  choices: [],
  usage: { completion_tokens: 3, prompt_tokens: 28, total_tokens: 31, prompt_tokens_details: { cached_tokens: 8 } },
  timings: { cache_n: 8, prompt_n: 20, prompt_ms: 60.5, predicted_n: 3, predicted_ms: 240.25 },
};

function piece(message: object, more: object = {}): object {
  return {
    model: "m",
    created_at: time,
    message: { role: "assistant", content: "", ...message },
    done: false,
    ...more,
  };
}

const figures = {
  total_duration: 350_000_000,
  load_duration: 39_500_000,
  prompt_eval_count: 28,
  prompt_eval_duration: 60_500_000,
  eval_count: 3,
  eval_duration: 240_250_000,
};

function last(reason: string): object {
  const message = { role: "assistant", content: "" };
  return { model: "m", created_at: time, message, done_reason: reason, done: true, ...figures };
}

const opening = delta({ role: "assistant", content: null });

test("text comes piece by piece, the figures last", () => {
  const chunks = [opening, delta({ content: "Hel" }), delta({ content: "lo" }), finish("stop"), usageChunk];
  assert.deepEqual(run(chunks), [piece({ content: "Hel" }), piece({ content: "lo" }), last("stop")]);
});

test("reasons are Ollama's", () => {
  for (const [theirs, ours] of [
    ["stop", "stop"],
    ["length", "length"],
    ["tool_calls", "stop"],
    ["content_filter", "stop"],
  ] as const) {
    assert.deepEqual(run([opening, finish(theirs), usageChunk]), [last(ours)]);
  }
});

test("reasoning becomes thinking", () => {
  const chunks = [opening, delta({ reasoning_content: "hm" }), delta({ content: "yes" }), finish("stop"), usageChunk];
  assert.deepEqual(run(chunks), [piece({ thinking: "hm" }), piece({ content: "yes" }), last("stop")]);
});

function call(index: number, part: object, id?: string): object {
  return delta({ tool_calls: [{ index, ...(id && { id, type: "function" }), function: part }] });
}

test("tool calls are put together and come whole, as objects, before the last record", () => {
  const chunks = [
    opening,
    call(0, { name: "weather", arguments: "" }, "abc"),
    call(0, { arguments: '{"city":' }),
    call(1, { name: "time", arguments: "" }, "def"),
    call(0, { arguments: '"Köln"}' }),
    finish("tool_calls"),
    usageChunk,
  ];
  const calls = [
    { id: "abc", function: { index: 0, name: "weather", arguments: { city: "Köln" } } },
    { id: "def", function: { index: 1, name: "time", arguments: {} } },
  ];
  assert.deepEqual(run(chunks), [piece({ tool_calls: calls }), last("stop")]);
});

test("arguments that are no JSON object end in a failure, and nothing follows", () => {
  for (const text of ['{"city":', "[1]", "null", "x"]) {
    const chunks = [opening, call(0, { name: "weather", arguments: text }, "a"), finish("tool_calls"), usageChunk];
    const error = "the model called the tool 'weather' with arguments that are no JSON object";
    assert.deepEqual(run(chunks), [failed(error)]);
  }
});

test("a call that the limit cut off is left out, the finished one before it is not", () => {
  const chunks = [
    opening,
    call(0, { name: "a", arguments: "{}" }, "x"),
    call(1, { name: "b", arguments: '{"c' }, "y"),
    finish("length"),
    usageChunk,
  ];
  const calls = [{ id: "x", function: { index: 0, name: "a", arguments: {} } }];
  assert.deepEqual(run(chunks), [piece({ tool_calls: calls }), last("length")]);
});

test("logprobs are passed with their piece", () => {
  const token = { token: "Hi", logprob: -0.1, bytes: [72, 105] };
  const content = [{ id: 4, ...token, top_logprobs: [{ id: 4, ...token }] }];
  const chunks = [opening, delta({ content: "Hi" }, { logprobs: { content } }), finish("stop"), usageChunk];
  // Alternatives are told to those who asked for them.
  assert.deepEqual(run(chunks), [piece({ content: "Hi" }, { logprobs: [token] }), last("stop")]);
});

test("an error chunk ends the answer with its text", () => {
  for (const [error, text] of [
    [{ code: 500, message: "out of memory", type: "server_error" }, "out of memory"],
    ["plain", "plain"],
    [{}, "the engine broke off"],
  ] as const) {
    const chunks = [opening, delta({ content: "a" }), { error }, delta({ content: "b" }), finish("stop"), usageChunk];
    assert.deepEqual(run(chunks), [piece({ content: "a" }), failed(text)]);
  }
});

test("a stream that ends without a finish reason was cut", () => {
  assert.deepEqual(run([]), [failed("the engine broke off")]);
  assert.deepEqual(run([opening, delta({ content: "a" })]), [piece({ content: "a" }), failed("the engine broke off")]);
});

test("what is no chunk makes no record", () => {
  for (const chunk of [null, 1, "x", [], {}, { choices: null }, { choices: [null] }, { choices: [{ delta: null }] }]) {
    assert.deepEqual(records().push(chunk), []);
  }
  assert.deepEqual(records().push({ choices: [{ index: 1, delta: { content: "other choice" } }] }), []);
});

test("timings in the finish chunk, and none at all", () => {
  const { timings, usage } = usageChunk;
  assert.deepEqual(run([opening, { ...finish("stop"), timings, usage }]), [last("stop")]);
  // Cached tokens are part of the prompt; without usage they are counted in.
  assert.deepEqual(run([opening, { ...finish("stop"), timings }]), [last("stop")]);
  assert.deepEqual(run([opening, finish("stop")]), [
    {
      ...last("stop"),
      load_duration: 0,
      prompt_eval_count: 0,
      prompt_eval_duration: 100_000_000,
      eval_count: 0,
      eval_duration: 250_000_000,
    },
  ]);
});

test("an answer that is not streamed is one record of the same pieces", () => {
  const logprobs = [{ token: "a", logprob: -1 }];
  const chunks = [
    opening,
    delta({ reasoning_content: "h" }),
    delta({ reasoning_content: "m" }),
    delta({ content: "a" }, { logprobs: { content: logprobs } }),
    delta({ content: "b" }, { logprobs: { content: logprobs } }),
    call(0, { name: "t", arguments: "{}" }, "i"),
    finish("tool_calls"),
    usageChunk,
  ];
  const calls = [{ id: "i", function: { index: 0, name: "t", arguments: {} } }];
  const stream = records();
  const pieces = chunks.flatMap((chunk) => stream.push(chunk));
  const end = stream.end();
  assert.ok(!(end instanceof GatewayError));
  assert.deepEqual(merged(pieces, end), {
    ...last("stop"),
    message: { role: "assistant", content: "ab", thinking: "hm", tool_calls: calls },
    logprobs: [...logprobs, ...logprobs],
  });
});

test("load and unload are answered by a last record alone", () => {
  const message = { role: "assistant", content: "" };
  assert.deepEqual(chatEnd("m", time, "load"), {
    model: "m",
    created_at: time,
    message,
    done_reason: "load",
    done: true,
  });
});
