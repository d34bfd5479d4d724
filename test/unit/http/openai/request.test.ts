// What the gateway reads of a compatible body, and what is left of the body.
import assert from "node:assert/strict";
import { test } from "node:test";
import { GatewayError } from "../../../../src/core/errors.ts";
import type { Variant } from "../../../../src/desired/document/document.ts";
import { type CompatRequest, readRequest } from "../../../../src/http/openai/request.ts";
import type { CachedModel } from "../../../../src/plan/observed.ts";

const variant: Variant = {
  name: "strict",
  set: { temperature: 0.5, max_tokens: 100, stop: ["x"], chat_template_kwargs: { enable_thinking: false }, top_k: 7 },
  force: ["max_tokens", "top_k"],
};

/** Every name means the one model, but for "nothing" and its variant. */
const catalog = {
  named: (name: string) => {
    if (name === "nothing") throw new GatewayError("model_not_found", "no");
    return { model: { id: "acme/alpha:Q8_0" } as CachedModel, variant: name === variant.name ? variant : null };
  },
};

async function read(text: string): Promise<CompatRequest & { readonly left: string }> {
  const request = await readRequest(Buffer.from(text), catalog);
  return { ...request, left: Buffer.concat(request.body).toString() };
}

const id = '"model":"acme/alpha:Q8_0"';

test("a body with nothing of ours passes to the byte", async () => {
  for (const text of [`{${id}}`, ` {\n${id} , "n" : 2 ,"x":{"num_ctx":5}, "options":{"top_k":1}}\n`]) {
    const { left, contextSize, keepAlive, stream } = await read(text);
    assert.deepEqual([left, contextSize, keepAlive, stream], [text, undefined, { kind: "default" }, false]);
  }
});

test("interface 2, Model identifier: the name becomes the model's own", async () => {
  assert.equal((await read('{"stream":true,"model":"alpha.gguf","n":1}')).left, `{"stream":true,${id},"n":1}`);
  assert.equal((await read('{"stream":true,"model":"alpha.gguf"}')).stream, true);
  assert.equal((await read('{"model":"a","stream":null}')).stream, false);
});

test("of two members with one name the last counts, for the gateway as for the engine", async () => {
  const { left } = await read('{"model":"nothing","model":"alpha","num_ctx":-1,"num_ctx":512}');
  assert.deepEqual(JSON.parse(left), { model: "acme/alpha:Q8_0", num_ctx: 512 });
  assert.equal((await read('{"model":"a","num_ctx":-1,"num_ctx":512}')).contextSize, 512);
  await assert.rejects(read('{"model":"alpha","model":"nothing"}'), { code: "model_not_found" });
});

test("the context size that is asked for, wherever it stands; the body goes on with it", async () => {
  const cases: readonly (readonly [text: string, size: number | undefined])[] = [
    [`{"num_ctx":4096,${id}}`, 4096],
    [`{${id},"ctx_size":4096}`, 4096],
    [`{${id} , "n":1, "num_ctx" : 8 ,"keep_alive":"5m"}`, 8],
    [`{"num_ctx":1,"keep_alive":0,${id},"ctx_size":2,"n":1}`, 2],
    [`{${id},"num_ctx":null}`, undefined],
  ];
  for (const [text, size] of cases) {
    // A short body is parsed and a longer one is scanned.
    for (const body of [text, `${text}${" ".repeat(16 * 1024)}`]) {
      const { left, contextSize } = await read(body);
      assert.deepEqual([left, contextSize], [body, size], text);
    }
  }
});

test("keep_alive in the forms that Ollama's clients write it", async () => {
  const cases: readonly (readonly [text: string, keepAlive: object])[] = [
    ['"5m"', { kind: "seconds", seconds: 300 }],
    ["0", { kind: "seconds", seconds: 0 }],
    ["-1", { kind: "forever" }],
    ["null", { kind: "default" }],
  ];
  for (const [text, keepAlive] of cases)
    assert.deepEqual((await read(`{${id},"keep_alive":${text}}`)).keepAlive, keepAlive);
});

test("what is not as it must be is refused by its name", async () => {
  const cases: readonly (readonly [text: string, param: string | undefined, message: RegExp])[] = [
    ["", undefined, /empty/],
    ["[]", undefined, /no JSON object/],
    ['{"model":"a",\n  "n": x}', undefined, /line 2, column 8: unexpected "x"/],
    ['{"model":"a"', undefined, /the text ends too early/],
    ["{}", "model", /missing/],
    ['{"model":7}', "model", /no string/],
    ['{"model":""}', "model", /missing/],
    ['{"model":"a","stream":"yes"}', "stream", /true or false/],
    ...["0", "-1", "1.5", '"4096"', "true", "{}", "1e99"].map(
      (value) => [`{"model":"a","num_ctx":${value}}`, "num_ctx", /whole number of tokens/] as const,
    ),
    ['{"model":"a","ctx_size":0}', "ctx_size", /whole number/],
    ...['"soon"', "true", "[1]"].map((value) => [`{"model":"a","keep_alive":${value}}`, "keep_alive", /5m/] as const),
  ];
  for (const [text, param, message] of cases) {
    await assert.rejects(read(text), (error: unknown) => {
      assert.ok(error instanceof GatewayError, text);
      assert.deepEqual([error.code, error.param], ["invalid_request", param], text);
      assert.match(error.message, message, text);
      return true;
    });
  }
});

test("a byte order mark before the body is no part of it", async () => {
  assert.equal((await read(`\ufeff{${id}}`)).left, `{${id}}`);
});

test("a variant fills in what the client has not sent, and replaces what it forces; the rest goes on to the byte", async () => {
  const filled =
    '"temperature":0.5,"stop":["x"],"stop_sequences":["x"],"chat_template_kwargs":{"enable_thinking":false}';
  const cases: readonly (readonly [text: string, left: string])[] = [
    [
      '{ "n":1,"model" : "strict" }',
      `{ "n":1,"model" : "acme/alpha:Q8_0","temperature":0.5,"max_tokens":100,"stop":["x"],"stop_sequences":["x"],"chat_template_kwargs":{"enable_thinking":false},"top_k":7 }`,
    ],
    // What the client sent stays, also inside of an object, which counts whole; what is forced is replaced where it stands.
    [
      '{"top_k":1,"temperature":0, "chat_template_kwargs":{"x":1},"stop":"y","model":"strict","max_tokens":5}',
      `{"top_k":7,"temperature":0, "chat_template_kwargs":{"x":1},"stop":"y",${id},"max_tokens":100}`,
    ],
    // Null is as good as absent.
    [
      '{"model":"strict","temperature":null,"max_tokens":1,"top_k":9}',
      `{${id},"stop":["x"],"stop_sequences":["x"],"chat_template_kwargs":{"enable_thinking":false},"temperature":0.5,"max_tokens":100,"top_k":7}`,
    ],
    // Of two names of one meaning the engine would take the one that is not forced.
    [
      '{"n_predict":500,"model":"strict","max_completion_tokens":9,"stop_sequences":[],"top_k":2}',
      `{"n_predict":100,${id},"temperature":0.5,"chat_template_kwargs":{"enable_thinking":false},"max_completion_tokens":100,"stop_sequences":[],"top_k":7}`,
    ],
    // Only members of the body itself count.
    [
      '{"model":"strict","options":{"temperature":1,"top_k":1},"max_tokens":1,"top_k":1}',
      `{${id},${filled},"options":{"temperature":1,"top_k":1},"max_tokens":100,"top_k":7}`,
    ],
  ];
  for (const [text, left] of cases)
    for (const padding of ["", " ".repeat(16 * 1024)]) {
      const request = await read(text + padding);
      assert.deepEqual(JSON.parse(request.left), JSON.parse(left), text);
      assert.equal(request.left.replaceAll(" ", ""), left.replaceAll(" ", ""), text);
      assert.equal(request.model.id, "acme/alpha:Q8_0");
    }
  const [plain] = (await readRequest(Buffer.from(`{${id},"temperature":1}`), catalog)).body;
  assert.equal(Buffer.from(plain ?? []).toString(), `{${id},"temperature":1}`);
});

test("a large body is filled in without a copy of it", async () => {
  const image = "x".repeat(20 << 20);
  const body = Buffer.from(
    `{"messages":["${image}"],"temperature":1,"model":"strict","top_k":1,"n":${"[".repeat(400)}${"]".repeat(400)}}`,
  );
  const request = await readRequest(body, catalog);
  const pieces = request.body;
  assert.ok(
    pieces.every(({ buffer, length }) => buffer === body.buffer || length < 200),
    "slices of the body itself",
  );
  const text = Buffer.concat(pieces).toString();
  const start = text.indexOf('"temperature"');
  assert.equal(text.slice(0, start), body.toString().slice(0, start));
  assert.match(text.slice(start), /^"temperature":1,"model":"acme\/alpha:Q8_0","max_tokens":100,"stop":\["x"\],/);
});
