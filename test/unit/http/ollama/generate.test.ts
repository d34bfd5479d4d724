// Ollama's generate requests become one of three engine requests, and what the engine sends becomes its records.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { nativeGenerateSchema } from "../../../../schemas/ollama.ts";
import { GatewayError } from "../../../../src/core/errors.ts";
import {
  asChatChunk,
  chatEnd,
  createChatRecords,
  generateRecord,
} from "../../../../src/http/ollama/wire/chat-records.ts";
import { type ParsedRequest, parseGenerateRequest } from "../../../../src/http/ollama/wire/requests.ts";
import { checked, refusalOf } from "../../../support/refusals.ts";

function parse(body: object): ParsedRequest {
  return parseGenerateRequest(checked(nativeGenerateSchema, { model: "m", ...body }));
}

function parsed(body: object): ParsedRequest {
  return parse({ prompt: "p", ...body });
}

function refusal(body: object): string | undefined {
  return refusalOf(() => parsed(body));
}

const png = "iVBORw0KGgoAAAANSUhEUg==";
const sampling = { temperature: 0, stop: ["x"] };
const options = { ...sampling, num_predict: 5, num_ctx: 512 };

test("a prompt is a chat of one message, after a system message", () => {
  const { path, upstream, purpose, numCtx, needs } = parsed({ system: "s", options, images: [png], think: true });
  assert.deepEqual([path, purpose, numCtx, needs], ["/v1/chat/completions", "generate", 512, ["vision", "thinking"]]);
  const image = { type: "image_url", image_url: { url: `data:image/png;base64,${png}` } };
  assert.deepEqual(upstream, {
    model: "m",
    stream: true,
    stream_options: { include_usage: true },
    messages: [
      { role: "system", content: "s" },
      { role: "user", content: [image, { type: "text", text: "p" }] },
    ],
    ...sampling,
    max_tokens: 5,
    chat_template_kwargs: { enable_thinking: true },
  });
});

test("raw goes to the engine as it stands, a suffix as the other side of a gap", () => {
  const settings = { options, format: "json", logprobs: true, top_logprobs: 2 };
  const plain = { ...sampling, n_predict: 5, n_probs: 2, json_schema: { type: "object" } };
  const raw = parsed({ ...settings, raw: true });
  assert.equal(raw.path, "/completion");
  assert.deepEqual(raw.upstream, { model: "m", stream: true, prompt: "p", ...plain });
  const gap = parsed({ ...settings, suffix: "q" });
  assert.deepEqual([gap.path, gap.needs], ["/infill", ["insert"]]);
  assert.deepEqual(gap.upstream, { model: "m", stream: true, input_prefix: "p", input_suffix: "q", ...plain });
});

test("no prompt: load, or unload with keep_alive 0", () => {
  assert.equal(parsed({ prompt: "" }).purpose, "load");
  assert.equal(parsed({ prompt: null, keep_alive: "5m" }).purpose, "load");
  assert.equal(parsed({ prompt: "", keep_alive: "0" }).purpose, "unload");
  assert.equal(parsed({ keep_alive: 0 }).purpose, "generate");
});

test("what is accepted and has no effect", () => {
  const { upstream } = parsed({ context: [1, 2], truncate: false, shift: true, template: "", suffix: "", raw: false });
  assert.deepEqual(upstream, parsed({}).upstream);
});

test("a refusal names the field", () => {
  const table: readonly (readonly [object, string])[] = [
    [{ model: "" }, "model must not be empty"],
    [{ prompt: 1 }, "prompt must be a string"],
    [{ suffix: {} }, "suffix must be a string"],
    [{ raw: "yes" }, "raw must be a boolean"],
    [{ context: "x" }, "context must be an array"],
    [{ images: ["aGVsbG8="] }, "images[0] must be a PNG, JPEG, GIF or WebP image in base64"],
    [{ raw: true, system: "s" }, "raw mode does not support template, system, or context"],
    [{ raw: true, context: [1] }, "raw mode does not support template, system, or context"],
    [{ raw: true, images: [png] }, "raw mode does not support images"],
    [{ options: { seed: "x" } }, "options.seed must be a number"],
  ];
  for (const [body, message] of table) assert.equal(refusal(body), message);
  assert.match(refusal({ template: "{{ .Prompt }}" }) ?? "", /^template is not supported/);
});

test("any JSON value is answered or refused, never thrown at", () => {
  const value = fc.jsonValue({ maxDepth: 2 });
  const names = ["prompt", "suffix", "system", "template", "raw", "context", "images", "options", "format"];
  const body = fc.record(Object.fromEntries(names.map((name) => [name, value])), { requiredKeys: [] });
  fc.assert(fc.property(body, (fields) => refusalOf(() => parse(fields)) !== ""));
});

test("the engine's own chunks become records of the answer", () => {
  const records = createChatRecords({ model: "m", createdAt: () => "then", now: () => 0, topLogprobs: 1 });
  const probabilities = [
    {
      id: 7,
      token: "a",
      bytes: [97],
      logprob: -0.1,
      top_logprobs: [{ id: 7, token: "a", bytes: [97], logprob: -0.1 }],
    },
  ];
  const chunks = [
    { index: 0, content: "a", tokens: [7], stop: false, completion_probabilities: probabilities },
    {
      index: 0,
      content: "",
      stop: true,
      stop_type: "limit",
      tokens_predicted: 1,
      tokens_evaluated: 3,
      timings: { prompt_n: 3, prompt_ms: 0, predicted_n: 1, predicted_ms: 0 },
    },
  ];
  const pieces = chunks.flatMap((chunk) => records.push(asChatChunk(chunk)));
  const last = records.end();
  assert.ok(!(last instanceof GatewayError));
  const made = [...pieces, last].map(generateRecord);
  const token = { token: "a", bytes: [97], logprob: -0.1 };
  assert.deepEqual(made, [
    {
      model: "m",
      created_at: "then",
      response: "a",
      done: false,
      logprobs: [{ ...token, top_logprobs: [token] }],
    },
    {
      model: "m",
      created_at: "then",
      response: "",
      done_reason: "length",
      done: true,
      total_duration: 0,
      load_duration: 0,
      prompt_eval_count: 3,
      prompt_eval_duration: 0,
      eval_count: 1,
      eval_duration: 0,
      context: [],
    },
  ]);
});

test("a cut stream, an error and a load", () => {
  const deps = { model: "m", createdAt: () => "then", now: () => 0, topLogprobs: 0 };
  const cut = createChatRecords(deps);
  cut.push(asChatChunk({ content: "a", stop: false }));
  assert.deepEqual(cut.end(), new GatewayError("upstream_failed", "the engine broke off"));
  const failed = createChatRecords(deps);
  assert.deepEqual(failed.push(asChatChunk({ error: { message: "no" } })), []);
  assert.deepEqual(failed.end(), new GatewayError("upstream_failed", "no"));
  assert.deepEqual(generateRecord(chatEnd("m", "then", "load")), {
    model: "m",
    created_at: "then",
    response: "",
    done_reason: "load",
    done: true,
  });
});
