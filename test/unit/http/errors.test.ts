// Each family's shape of every error.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ErrorCode, errorCatalogue, GatewayError } from "../../../src/core/errors.ts";
import { errorFrame, renderEngineError, renderError } from "../../../src/http/errors.ts";

for (const code of Object.keys(errorCatalogue) as ErrorCode[]) {
  test(`every family's shape of ${code}`, () => {
    const error = new GatewayError(code, "what happened");
    const { status, hint } = errorCatalogue[code];
    // A defect's message may hold anything.
    const message = code === "internal" ? "internal error" : "what happened";
    const type = status < 500 ? "invalid_request_error" : "server_error";
    assert.deepEqual(renderError("gateway", error), { status, body: { error: { code, message, hint } } });
    assert.deepEqual(renderError("compat", error), { status, body: { error: { message, type, param: null, code } } });
    assert.deepEqual(renderError("native", error), { status, body: { error: message } });
  });
}

test("a defect's own words reach no client", () => {
  for (const family of ["gateway", "compat", "native"] as const) {
    const { status, body } = renderError(family, new Error("token=hunter2"));
    assert.equal(status, 500);
    assert.doesNotMatch(JSON.stringify(body), /hunter2/);
  }
  assert.doesNotMatch(errorFrame("compat", new Error("hunter2")), /hunter2/);
});

test("an error in mid-stream is a frame of the family", () => {
  const error = new GatewayError("upstream_failed", "two\nlines");
  assert.equal(
    errorFrame("compat", error),
    'data: {"error":{"message":"two\\nlines","type":"server_error","param":null,"code":"upstream_failed"}}\n\n',
  );
  assert.equal(errorFrame("native", error), '{"error":"two\\nlines"}\n');
});

const tooLong = {
  code: 400,
  message: "request (3226 tokens) exceeds",
  type: "exceed_context_size_error",
  n_prompt_tokens: 3226,
  n_ctx: 1024,
};
const engine: readonly (readonly [why: string, status: number, text: string, seen: number, error: object])[] = [
  [
    "its further fields are kept",
    400,
    JSON.stringify({ error: tooLong }),
    400,
    { ...tooLong, param: null, code: "context_length_exceeded" },
  ],
  [
    "an unknown type",
    418,
    '{"error":{"message":"m","type":"odd"}}',
    418,
    { message: "m", type: "odd", param: null, code: "invalid_request" },
  ],
  [
    "a type named like a property of every object",
    500,
    '{"error":{"message":"m","type":"constructor"}}',
    500,
    { message: "m", type: "constructor", param: null, code: "upstream_failed" },
  ],
  [
    "no JSON",
    500,
    "proxy error: Failed to read connection",
    500,
    { message: "proxy error: Failed to read connection", type: "server_error", param: null, code: "upstream_failed" },
  ],
  [
    "a text for an error",
    400,
    '{"error":"what happened"}',
    400,
    { message: "what happened", type: "server_error", param: null, code: "invalid_request" },
  ],
  [
    "nothing",
    503,
    "",
    503,
    { message: "the engine answered 503", type: "server_error", param: null, code: "upstream_failed" },
  ],
  [
    "JSON that is no object",
    500,
    "null",
    500,
    { message: "null", type: "server_error", param: null, code: "upstream_failed" },
  ],
  [
    "an error that is null",
    500,
    '{"error":null}',
    500,
    { message: '{"error":null}', type: "server_error", param: null, code: "upstream_failed" },
  ],
  [
    "our own key is wrong there",
    401,
    '{"error":{"message":"Invalid API Key","type":"authentication_error","code":401}}',
    502,
    { message: "Invalid API Key", type: "authentication_error", param: null, code: "upstream_failed" },
  ],
];

for (const [why, status, text, seen, error] of engine) {
  test(`the engine's error: ${why}`, () => {
    assert.deepEqual(renderEngineError("compat", status, text), { status: seen, body: { error } });
    assert.deepEqual(renderEngineError("native", status, text), {
      status: seen,
      body: { error: (error as { message: string }).message },
    });
  });
}

test("a long answer of the engine is cut", () => {
  const { body } = renderEngineError("native", 500, "x".repeat(10_000));
  assert.ok(JSON.stringify(body).length < 600);
});
