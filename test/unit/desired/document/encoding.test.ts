// gateway.yaml in encodings other than UTF-8: refused by name and place, and no U+FFFD in an id.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseBytes } from "../../../../src/desired/document/encoding.ts";

const text = "version: 1\nmodels:\n  - acme/a:Q8_0 # caf\u00e9\n";

const bigEndian = (value: string): Buffer => Buffer.from(value, "utf16le").swap16();

for (const [what, bytes, place, message] of [
  ["UTF-16 with a mark", Buffer.from(`\ufeff${text}`, "utf16le"), "1:1", /^the file is UTF-16 \(little endian\)/],
  ["UTF-16 without", Buffer.from(text, "utf16le"), "1:1", /^the file is UTF-16 \(little endian\)/],
  ["UTF-16 the other way round", bigEndian(`\ufeff${text}`), "1:1", /^the file is UTF-16 \(big endian\)/],
  ["the same without a mark", bigEndian(text), "1:1", /^the file is UTF-16 \(big endian\)/],
  ["UTF-32", Buffer.from([0xff, 0xfe, 0, 0, 0x76, 0, 0, 0]), "1:1", /^the file is UTF-32/],
  ["Latin-1", Buffer.from(text, "latin1"), "3:22", /^byte 0xE9 is not UTF-8, .*Latin-1/],
  ["a letter that is cut off", Buffer.from(text).subarray(0, -2), "3:22", /^byte 0xC3 is not UTF-8/],
] as const) {
  test(`${what} is refused by name`, () => {
    const parsed = parseBytes(bytes);
    assert.ok(!parsed.ok);
    const [problem] = parsed.problems;
    assert.equal(parsed.problems.length, 1);
    assert.equal(`${problem?.line}:${problem?.column}`, place);
    assert.match(problem?.message ?? "", message);
    assert.match(problem?.message ?? "", /save (?:it|the file) as UTF-8$/);
  });
}

test("UTF-8 is taken, with a mark, any letter and the replacement character itself", () => {
  assert.ok(parseBytes(Buffer.from(`\ufeff${text} # \u{1f999} \ufffd\n`)).ok);
  assert.deepEqual(parseBytes(Buffer.from([0, 1, 2])), {
    ok: false,
    problems: [{ line: 1, column: 1, path: "", message: "must be object" }],
    more: 0,
  });
});
