// gateway.yaml in encodings other than UTF-8: refused with the line, and no U+FFFD in an id.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parseBytes } from "../../../../src/desired/document/parse.ts";

const text = "version: 1\nmodels:\n  - acme/a:Q8_0 # caf\u00e9\n";

for (const [what, bytes, line] of [
  ["UTF-16 with a mark", Buffer.from(`\ufeff${text}`, "utf16le"), 1],
  ["UTF-16 without", Buffer.from(text, "utf16le"), 1],
  ["the same the other way round", Buffer.from(text, "utf16le").swap16(), 1],
  ["UTF-32", Buffer.from([0xff, 0xfe, 0, 0, 0x76, 0, 0, 0]), 1],
  ["Latin-1", Buffer.from(text, "latin1"), 3],
  ["a letter that is cut off", Buffer.from(text).subarray(0, -2), 3],
] as const) {
  test(`${what} is refused`, () => {
    const problem = { line, column: 1, path: "", message: "not UTF-8: save the file as UTF-8" };
    assert.deepEqual(parseBytes(bytes), { ok: false, problems: [problem], more: 0 });
  });
}

test("UTF-8 is taken, with a mark, any letter and the replacement character itself", () => {
  assert.ok(parseBytes(Buffer.from(`\ufeff${text} # \u{1f999} \ufffd\n`)).ok);
});
