// Bodies as JSON values: what is large is not parsed before it is known to be harmless.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import { parseJsonBody } from "../../../src/http/json-body.ts";

const size = 3 << 20;

function bytes(...parts: readonly (string | Buffer)[]): Buffer {
  return Buffer.concat(parts.map((part) => (typeof part === "string" ? Buffer.from(part) : part)));
}

function refusal(body: Buffer): string {
  try {
    parseJsonBody(body);
  } catch (error) {
    if (error instanceof GatewayError && error.code === "invalid_request") return error.message;
    throw error;
  }
  throw new Error("it was taken");
}

describe("a body as a JSON value", () => {
  it("is undefined where there is none, and may have a byte order mark", () => {
    assert.equal(parseJsonBody(undefined), undefined);
    assert.equal(parseJsonBody(Buffer.alloc(0)), undefined);
    assert.equal(parseJsonBody(bytes("\uFEFF")), undefined);
    assert.deepEqual(parseJsonBody(bytes('\uFEFF{"a":"é"}')), { a: "é" });
  });

  it("tells where it is none", () => {
    assert.equal(refusal(bytes('{"a": 1,\n}')), 'the body is no JSON: line 2, column 1: unexpected "}"');
  });

  it("may hold a large image, and a context's worth of tokens", () => {
    const image = parseJsonBody(bytes('{"images":["', Buffer.alloc(size, "QUJD"), '"]}')) as { images: string[] };
    assert.equal(image.images[0]?.length, size);
    const tokens = parseJsonBody(bytes('{"context":[', "12345,".repeat(262_143), "1]}")) as { context: number[] };
    assert.equal(tokens.context.length, 262_144);
  });

  for (const [what, body] of [
    ["millions of lists", bytes('{"a":[', Buffer.alloc(size, "[],"), "[]]}")],
    ["millions of numbers", bytes('{"a":[', Buffer.alloc(size, "1,"), "1]}")],
    ["lists in lists", bytes('{"a":', Buffer.alloc(size, "["), Buffer.alloc(size, "]"), "}")],
  ] as const) {
    it(`is refused unparsed with ${what}`, () => {
      JSON.parse(body.toString());
      assert.match(refusal(body), /nested too deeply, or of too many values \(at byte \d+\)$/);
    });
  }

  for (const [what, body] of [
    ["line breaks", bytes(Buffer.alloc(size, "\n"), "x")],
    ["brackets", Buffer.alloc(size, "[")],
    ["escapes", bytes('"', Buffer.alloc(size, "\\n"), "x")],
    ["numbers", bytes('{"a":[', Buffer.alloc(size, "1,"), "x")],
  ] as const) {
    it(`of ${what} is not looked through to its end`, () => {
      assert.throws(() => JSON.parse(body.toString()), SyntaxError);
      assert.doesNotMatch(refusal(body), /line|column/);
    });
  }
});
