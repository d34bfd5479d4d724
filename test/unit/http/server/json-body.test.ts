// Bodies as JSON values: what is large is not parsed before it is known to be harmless.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { GatewayError } from "../../../../src/core/errors.ts";
import { parseJsonBody } from "../../../../src/http/server/json-body.ts";
import { encodeJson, parseAnyBody } from "../../../../src/http/server/long-texts.ts";

const size = 3 << 20;

function bytes(...parts: readonly (string | Buffer)[]): Buffer {
  return Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
}

async function refusal(body: Buffer): Promise<string> {
  const error: unknown = await parseAnyBody(body).catch((thrown: unknown) => thrown);
  if (error instanceof GatewayError && error.code === "invalid_request") return error.message;
  throw new Error("it was taken", { cause: error });
}

describe("a body as a JSON value", () => {
  it("is undefined where there is none, and may have a byte order mark", () => {
    assert.equal(parseJsonBody(undefined), undefined);
    assert.equal(parseJsonBody(Buffer.alloc(0)), undefined);
    assert.equal(parseJsonBody(bytes("\uFEFF")), undefined);
    assert.deepEqual(parseJsonBody(bytes('\uFEFF{"a":"é"}')), { a: "é" });
  });

  it("tells where it is none", async () => {
    assert.equal(await refusal(bytes('{"a": 1,\n}')), 'the body is no JSON: line 2, column 1: unexpected "}"');
  });

  it("may hold a context's worth of tokens", async () => {
    const tokens = (await parseAnyBody(bytes('{"context":[', "12345,".repeat(262_143), "1]}"))) as {
      context: number[];
    };
    assert.equal(tokens.context.length, 262_144);
  });

  for (const [what, body] of [
    ["millions of lists", bytes('{"a":[', Buffer.alloc(size, "[],"), "[]]}")],
    ["millions of numbers", bytes('{"a":[', Buffer.alloc(size, "1,"), "1]}")],
    ["lists in lists", bytes('{"a":', Buffer.alloc(size, "["), Buffer.alloc(size, "]"), "}")],
  ] as const) {
    it(`is refused unparsed with ${what}`, async () => {
      assert.match(await refusal(body), /nested too deeply, or of too many values \(at byte \d+\)$/);
    });
  }

  for (const [what, body] of [
    ["line breaks", bytes(Buffer.alloc(size, "\n"), "x")],
    ["brackets", Buffer.alloc(size, "[")],
    ["escapes", bytes('["', Buffer.alloc(size, "\\n"), "x")],
    ["numbers", bytes('{"a":[', Buffer.alloc(size, "1,"), "x")],
  ] as const) {
    it(`of ${what} is not looked through to its end`, async () => {
      assert.throws(() => JSON.parse(body.toString()), SyntaxError);
      assert.doesNotMatch(await refusal(body), /line|column/);
    });
  }
});

describe("the long texts of a large body", () => {
  const image = `iVBORw0KGgo${"QUJD".repeat(1 << 18)}`;
  const text = `${'é \u{1f600}\n\t"\\ '.repeat(40_000)}end`;

  it("are a mark behind their beginnings, and whole when it is written", async () => {
    const source = { model: "m", messages: [{ role: "user", content: text, images: [image, image.slice(0, 4096)] }] };
    const parsed = (await parseAnyBody(bytes(JSON.stringify(source)))) as typeof source;
    assert.equal(parsed.model, "m");
    const [marked = ""] = parsed.messages[0]?.images ?? [];
    assert.ok(marked.startsWith(image.slice(0, 64)) && marked.length < 100, marked.slice(0, 200));
    const written = { ...parsed, more: [`data:image/png;base64,${marked}`] };
    assert.deepEqual(JSON.parse(Buffer.concat(encodeJson(written, parsed)).toString()), {
      ...source,
      more: [`data:image/png;base64,${image}`],
    });
  });

  it("are whole within JSON that is a text itself", async () => {
    const source = { a: { code: text, plain: image, escapes: '\\"'.repeat(5_000) } };
    const parsed = (await parseAnyBody(bytes(JSON.stringify(source)))) as typeof source;
    const twice = JSON.stringify({ thrice: JSON.stringify(parsed.a) });
    const written = JSON.parse(Buffer.concat(encodeJson({ twice }, parsed)).toString()) as { twice: string };
    assert.deepEqual(JSON.parse((JSON.parse(written.twice) as { thrice: string }).thrice), source.a);
  });

  it("are nobody else's: a mark that a client writes stays as it is", async () => {
    const source = { a: image, b: "\u0001x.0;", c: "\u00010000000000000000.0;" };
    const parsed = await parseAnyBody(bytes(JSON.stringify(source)));
    assert.deepEqual(JSON.parse(Buffer.concat(encodeJson(parsed as object, parsed)).toString()), source);
    assert.deepEqual(JSON.parse(Buffer.concat(encodeJson(parsed as object, null)).toString()), parsed);
  });

  it("are all that may be large", async () => {
    const names = Object.fromEntries(Array.from({ length: 9_000 }, (_, at) => [`${at}${"k".repeat(1_000)}`, 0]));
    await assert.rejects(parseAnyBody(bytes(JSON.stringify(names))), { code: "body_too_large" });
  });
});
