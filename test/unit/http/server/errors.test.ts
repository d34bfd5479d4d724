// Each family's shape of every error.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type ErrorCode, errorCatalog } from "../../../../src/core/error-catalog.ts";
import { GatewayError } from "../../../../src/core/errors.ts";
import {
  type Dialect,
  errorHeaders,
  frameOf,
  renderEngineError,
  renderError,
} from "../../../../src/http/server/errors.ts";

function errorFrame(dialect: Dialect, error: unknown): string {
  return frameOf(dialect, renderError(dialect, error));
}

for (const code of Object.keys(errorCatalog) as ErrorCode[]) {
  test(`every family's shape of ${code}`, () => {
    const error = new GatewayError(code, "what happened");
    const { status, hint } = errorCatalog[code];
    // A defect's message may hold anything.
    const message = code === "internal" ? "internal error" : "what happened";
    const type = status < 500 ? "invalid_request_error" : "server_error";
    assert.deepEqual(renderError("gateway", error), { status, body: { error: { code, message, hint } } });
    const param = code === "model_not_found" ? "model" : null;
    // These families have no place for a hint, and some errors are of little use without.
    const told = ["speech_off", "voice_not_found", "transcription_model_not_found"].includes(code)
      ? `${message}. ${hint}`
      : message;
    assert.deepEqual(renderError("compat", error), { status, body: { error: { message: told, type, param, code } } });
    assert.deepEqual(renderError("native", error), { status, body: { error: told } });
    assert.deepEqual(renderError("messages", error), {
      status,
      body: { type: "error", error: { message: told, type: anthropicTypeOf(status), param, code } },
    });
  });
}

/** As Anthropic's documentation has them. */
function anthropicTypeOf(status: number): string {
  const types: Record<number, string> = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    503: "overloaded_error",
  };
  return types[status] ?? (status < 500 ? "invalid_request_error" : "api_error");
}

test("the member that is at fault is named", () => {
  const { body } = renderError("compat", new GatewayError("invalid_request", "m", { param: "num_ctx" }));
  assert.equal((body as { error: { param: string } }).error.param, "num_ctx");
});

test("clients that repeat by themselves are told when to, and where it is of no use", () => {
  const headersOf = (code: ErrorCode, retryAfterMs?: number): object =>
    errorHeaders(new GatewayError(code, "m", retryAfterMs === undefined ? {} : { retryAfterMs }));
  const no = { "x-should-retry": "false" };
  assert.deepEqual(headersOf("invalid_request"), {});
  assert.deepEqual(headersOf("upstream_failed"), {});
  assert.deepEqual(headersOf("router_unavailable"), { "retry-after": "5" });
  assert.deepEqual(headersOf("hub_rate_limited", 1_500), { "retry-after": "2" });
  for (const code of ["suspended", "internal", "model_load_failed", "not_supported", "engine_missing"] as const)
    assert.deepEqual(headersOf(code), no, code);
});

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
  assert.equal(
    errorFrame("messages", error),
    'event: error\ndata: {"type":"error","error":{"message":"two\\nlines","type":"api_error","param":null,' +
      '"code":"upstream_failed"}}\n\n',
  );
  const [event, data] = errorFrame("responses", error).split("\n");
  assert.equal(event, "event: error");
  assert.deepEqual(JSON.parse(data?.slice("data: ".length) ?? ""), {
    type: "error",
    sequence_number: 0,
    code: "upstream_failed",
    message: "two\nlines",
    param: null,
    error: { message: "two\nlines", type: "server_error", param: null, code: "upstream_failed" },
  });
});

const tooLong = {
  code: 400,
  message: "request (3226 tokens) exceeds",
  type: "exceed_context_size_error",
  n_prompt_tokens: 3226,
  n_ctx: 1024,
};
type EngineCase = readonly [why: string, status: number, text: string, seen: number, error: object];

const engine: readonly EngineCase[] = [
  [
    "its further fields are kept",
    400,
    JSON.stringify({ error: tooLong }),
    400,
    { ...tooLong, param: null, code: "context_length_exceeded" },
  ],
  [
    "a field is missing, which it calls a failure of its own",
    500,
    '{"error":{"code":500,"message":"\'messages\' is required","type":"server_error"}}',
    400,
    { message: "'messages' is required", type: "invalid_request_error", param: "messages", code: "invalid_request" },
  ],
  [
    "a field is of another type",
    400,
    '{"error":{"code":400,"message":"Field \'temperature\': type must be number","type":"invalid_request_error"}}',
    400,
    {
      message: "Field 'temperature': type must be number",
      type: "invalid_request_error",
      param: "temperature",
      code: "invalid_request",
    },
  ],
  ...(
    [
      [501, "This server does not support embeddings. Start it with `--embeddings`", "embeddings"],
      [400, "Pooling type 'none' is not OAI compatible. Please use a different pooling type", "embeddings"],
      [501, "This server does not support reranking. Start it with `--reranking`", "reranking"],
      [501, "Infill is not supported by this model: prefix token is missing. ", "infill: it has no tokens for it"],
      [500, "image input is not supported - hint: you may need to provide the mmproj", "images"],
    ] as const
  ).map(
    ([status, message, what]): EngineCase => [
      `the model cannot do it: ${what}`,
      status,
      JSON.stringify({ error: { code: status, message, type: "server_error" } }),
      400,
      {
        message: `this model does not support ${what}`,
        type: "invalid_request_error",
        param: null,
        code: "not_capable",
      },
    ],
  ),
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
