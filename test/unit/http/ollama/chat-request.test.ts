// Ollama's chat requests become chat completion bodies; what is wrong is refused by the name of its field.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { nativeChatSchema } from "../../../../schemas/ollama.ts";
import { type ParsedRequest, parseChatRequest } from "../../../../src/http/ollama/wire/requests.ts";
import { checked, refusalOf } from "../../../support/refusals.ts";

const png = "iVBORw0KGgoAAAANSUhEUg==";
const hello = [{ role: "user", content: "hello" }];

function parse(body: unknown): ParsedRequest {
  return parseChatRequest(checked(nativeChatSchema, body));
}

function parsed(body: object): ParsedRequest {
  return parse({ model: "m", messages: hello, ...body });
}

/** What a request adds to the body that every chat has. */
function added(body: object): object {
  const { model, messages, stream, stream_options, ...rest } = parsed(body).upstream;
  assert.deepEqual(
    { model, stream, stream_options },
    { model: "m", stream: true, stream_options: { include_usage: true } },
  );
  assert.ok(Array.isArray(messages));
  return rest;
}

function refusal(body: unknown): string | undefined {
  return refusalOf(() => parse(body));
}

test("the least request", () => {
  assert.deepEqual(parse({ model: "m", messages: hello }), {
    model: "m",
    purpose: "chat",
    stream: true,
    keepAlive: { kind: "default" },
    numCtx: undefined,
    topLogprobs: 0,
    needs: [],
    path: "/v1/chat/completions",
    upstream: { model: "m", messages: hello, stream: true, stream_options: { include_usage: true } },
  });
});

test("null is as good as absent", () => {
  const names = ["stream", "format", "keep_alive", "tools", "options", "think", "logprobs", "top_logprobs", "truncate"];
  assert.deepEqual(parsed(Object.fromEntries(names.map((name) => [name, null]))), parsed({}));
  const options = Object.fromEntries(["temperature", "num_ctx", "num_predict", "stop"].map((name) => [name, null]));
  assert.deepEqual(parsed({ options }), parsed({}));
});

test("a request that is not streamed is streamed upstream all the same", () => {
  const request = parsed({ stream: false });
  assert.equal(request.stream, false);
  assert.equal(request.upstream["stream"], true);
});

test("no messages: load, or unload with keep_alive 0", () => {
  for (const messages of [[], null, undefined]) {
    assert.equal(parsed({ messages }).purpose, "load");
    assert.equal(parsed({ messages, keep_alive: "5m" }).purpose, "load");
    assert.equal(parsed({ messages, keep_alive: -1 }).purpose, "load");
    for (const keep_alive of [0, "0", "0s", "-0"]) assert.equal(parsed({ messages, keep_alive }).purpose, "unload");
  }
  assert.equal(parsed({ keep_alive: 0 }).purpose, "chat");
});

test("tools, format, thinking and logprobs", () => {
  const tools = [{ type: "function", function: { name: "t", parameters: { type: "object" } } }];
  const schema = { type: "object", properties: { a: { type: "string" } } };
  const table: readonly (readonly [object, object])[] = [
    [{ tools }, { tools }],
    [{ tools: [] }, {}],
    [{ format: "" }, {}],
    [{ format: "json" }, { response_format: { type: "json_object" } }],
    [
      { format: schema },
      { response_format: { type: "json_schema", json_schema: { name: "answer", strict: true, schema } } },
    ],
    [{ think: true }, { chat_template_kwargs: { enable_thinking: true } }],
    [{ think: false }, { chat_template_kwargs: { enable_thinking: false } }],
    [
      { think: "low" },
      { chat_template_kwargs: { enable_thinking: true, reasoning_effort: "low" }, reasoning_effort: "low" },
    ],
    [
      { think: "max" },
      { chat_template_kwargs: { enable_thinking: true, reasoning_effort: "high" }, reasoning_effort: "high" },
    ],
    [{ logprobs: true }, { logprobs: true, top_logprobs: 1 }],
    [
      { logprobs: true, top_logprobs: 3 },
      { logprobs: true, top_logprobs: 3 },
    ],
    [{ top_logprobs: 3 }, {}],
  ];
  for (const [body, expected] of table) assert.deepEqual(added(body), expected, JSON.stringify(body));
});

test("what the model has to be able to do", () => {
  const tools = [{ type: "function", function: { name: "t" } }];
  const images = [{ role: "user", content: "?", images: [png] }];
  assert.deepEqual(parsed({ tools, messages: images, think: "low" }).needs, ["tools", "vision", "thinking"]);
  assert.deepEqual(parsed({ tools: [], think: false }).needs, []);
});

test("sampling options are mapped, those of loading are not, the context size comes apart", () => {
  const same = {
    temperature: 0.5,
    top_k: 40,
    top_p: 0.9,
    min_p: 0.1,
    typical_p: 1,
    repeat_last_n: 64,
    repeat_penalty: 1.1,
    presence_penalty: 0.2,
    frequency_penalty: 0.3,
    seed: 0,
    mirostat: 2,
    mirostat_tau: 5,
    mirostat_eta: 0.1,
    stop: ["a", "b"],
  };
  const loading = { num_gpu: 1, num_batch: 512, num_thread: 4, use_mmap: true, num_keep: 4, unknown: {} };
  const options = { ...same, ...loading, num_predict: 7, num_ctx: 4096 };
  assert.deepEqual(added({ options }), { ...same, max_tokens: 7 });
  assert.equal(parsed({ options }).numCtx, 4096);
  assert.equal(parsed({}).numCtx, undefined);
  for (const num_predict of [-1, -2, 0]) assert.deepEqual(added({ options: { num_predict } }), {});
  assert.deepEqual(added({ options: { stop: "x", top_k: 3.9 } }), { stop: ["x"], top_k: 3 });
});

test("a refusal names the field", () => {
  const user = (more: object) => ({ model: "m", messages: [...hello, { role: "user", ...more }] });
  const call = (value: unknown) => ({ model: "m", messages: [{ role: "assistant", tool_calls: [value] }] });
  const table: readonly (readonly [unknown, string])[] = [
    [null, "the body is empty; a JSON object is expected"],
    [[], "the body must be a JSON object"],
    [{}, "model is missing"],
    [{ model: "" }, "model must not be empty"],
    [{ model: 1 }, "model must be a string"],
    [{ model: "m", stream: "yes" }, "stream must be a boolean"],
    [{ model: "m", messages: {} }, "messages must be an array"],
    [{ model: "m", messages: ["x"] }, "messages[0] must be an object"],
    [{ model: "m", messages: [{ content: "x" }] }, "messages[0].role is missing"],
    [user({ content: [] }), "messages[1].content must be a string"],
    [user({ images: "x" }), "messages[1].images must be an array"],
    [user({ images: [png, 1] }), "messages[1].images[1] must be a string"],
    [user({ images: ["aGVsbG8="] }), "messages[1].images[0] must be a PNG, JPEG, GIF or WebP image in base64"],
    [call(1), "messages[0].tool_calls[0] must be an object"],
    [call({ function: {} }), "messages[0].tool_calls[0].function.name is missing"],
    [
      call({ function: { name: "a", arguments: "{}" } }),
      "messages[0].tool_calls[0].function.arguments must be an object",
    ],
    [{ model: "m", tools: {} }, "tools must be an array"],
    [{ model: "m", tools: [1] }, "tools[0] must be an object"],
    [{ model: "m", options: [] }, "options must be an object"],
    [{ model: "m", options: { temperature: "hot" } }, "options.temperature must be a number"],
    [{ model: "m", options: { num_predict: "x" } }, "options.num_predict must be a number"],
    [{ model: "m", options: { stop: 1 } }, "options.stop must be a string or an array"],
    [{ model: "m", options: { stop: [1] } }, "options.stop[0] must be a string"],
    [{ model: "m", options: { num_ctx: 0 } }, "options.num_ctx must be >= 1"],
    [{ model: "m", options: { num_ctx: 1.5 } }, "options.num_ctx must be an integer"],
    [{ model: "m", format: "xml" }, 'format must be "json" or a JSON schema'],
    [{ model: "m", think: "hard" }, "think must be one of true, false, low, medium, high, max"],
    [{ model: "m", top_logprobs: 21 }, "top_logprobs must be <= 20"],
    [{ model: "m", logprobs: 1 }, "logprobs must be a boolean"],
    [{ model: "m", truncate: "yes" }, "truncate must be a boolean"],
    [{ model: "m", shift: 1 }, "shift must be a boolean"],
    [{ model: "m", keep_alive: [] }, "keep_alive must be a number or a string"],
    [{ model: "m", keep_alive: "soon" }, 'keep_alive must be seconds, or a duration such as "5m"'],
  ];
  for (const [body, message] of table) assert.equal(refusal(body), message);
});

test("any JSON value is answered or refused, never thrown at", () => {
  const value = fc.jsonValue({ maxDepth: 3 });
  const body = fc.record(
    Object.fromEntries(["messages", "options", "tools", "format", "think", "keep_alive"].map((name) => [name, value])),
    { requiredKeys: [] },
  );
  fc.assert(
    fc.property(body, fc.array(value), (fields, messages) => {
      for (const request of [fields, { model: "m", ...fields }, { model: "m", ...fields, messages }]) {
        assert.notEqual(
          refusalOf(() => parse(request)),
          "",
        );
      }
    }),
    { numRuns: 1000 },
  );
});
