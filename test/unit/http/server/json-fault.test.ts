// Where a text stops being JSON: the place, and that the whole text is never told.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { jsonFault } from "../../../../src/http/server/json-body.ts";

function told(text: string): string | null {
  return jsonFault(Buffer.from(text));
}

describe("the place where JSON goes wrong", () => {
  for (const [text, expected] of [
    ["", "line 1, column 1: there is nothing but white space"],
    [" \n ", "line 2, column 2: there is nothing but white space"],
    ["{", "line 1, column 2: the text ends too early"],
    ['{"a": 1,}', 'line 1, column 9: unexpected "}"'],
    ["[1, 2,]", 'line 1, column 7: unexpected "]"'],
    ["[1 2]", 'line 1, column 4: unexpected "2"'],
    ["{'a': 1}", 'line 1, column 2: unexpected "\'"'],
    ["{a: 1}", 'line 1, column 2: unexpected "a"'],
    ['{"a" 1}', 'line 1, column 6: unexpected "1"'],
    ['{"a":}', 'line 1, column 6: unexpected "}"'],
    ['{\n  "model": "x",\n  "messages": [\n    nope\n  ]\n}', 'line 4, column 5: unexpected "n"'],
    ['{"a": "one\ntwo"}', "line 1, column 11: a line break, which a string has as \\n"],
    ['["tab\tinside"]', "line 1, column 6: a control character"],
    ['["bad \\x escape"]', 'line 1, column 7: unexpected "\\\\"'],
    ['["\\u12g4"]', 'line 1, column 3: unexpected "\\\\"'],
    ['["never closed', "line 1, column 15: the text ends too early"],
    ["[01]", 'line 1, column 3: unexpected "1"'],
    ["[-]", 'line 1, column 3: unexpected "]"'],
    ["[1.]", 'line 1, column 4: unexpected "]"'],
    ["[nul]", 'line 1, column 2: unexpected "n"'],
    ["[nullx]", 'line 1, column 6: unexpected "x"'],
    ['{"a": "x\\q" 1}', 'line 1, column 9: unexpected "\\\\"'],
    ["{} {}", 'line 1, column 4: unexpected "{"'],
    ["[1]]", 'line 1, column 4: unexpected "]"'],
    ["[}", 'line 1, column 2: unexpected "}"'],
    ['["😀" x]', 'line 1, column 7: unexpected "x"'],
    ["undefined", 'line 1, column 1: unexpected "u"'],
  ] as const) {
    it(`of ${JSON.stringify(text)}`, () => {
      assert.throws(() => JSON.parse(text), SyntaxError);
      assert.equal(told(text), expected);
    });
  }

  for (const text of [
    "[null]",
    "[ true ]",
    "[-0]",
    "[1.5e+10]",
    '[""]',
    '["\\u00e9\\n"]',
    "[]",
    "{ }",
    '[{"a":[[],{}]}, "x" ]',
  ]) {
    it(`is nowhere in ${text}`, () => {
      JSON.parse(text);
      assert.equal(told(text), null);
    });
  }

  it("agrees with the parser on every cut and every changed character of a document", () => {
    const document = '{"model":"a:b","n":-1.5e3,"on":[true,false,null,{"k":"\\u0041\\\\"}],"e":{}}';
    const texts = Array.from(document, (_, at) => [
      document.slice(0, at),
      ...['"', "{", "}", "[", "]", ",", ":", "0", "e", "\\", "\n", " "].map(
        (char) => document.slice(0, at) + char + document.slice(at + 1),
      ),
    ]).flat();
    for (const text of texts) {
      let parses = true;
      try {
        JSON.parse(text);
      } catch {
        parses = false;
      }
      assert.equal(told(text) === null, parses, text);
    }
  });

  it("is not looked for beyond the first 64 KiB, and where that ends is none", () => {
    const searched = 1 << 16;
    assert.equal(told(`${"\n".repeat(searched - 100)}x`), `line ${searched - 99}, column 1: unexpected "x"`);
    for (const [before, unit, after] of [
      ["", "\n", "x"],
      ["", "[", ""],
      ['["', "a", ""],
      ['["', "\\u00e9", "?"],
      ["[", "true,", "x"],
      ["[", "1.5,", "x"],
      ["[", '"é",', "x"],
    ] as const) {
      // So that the cut falls on each place of a unit.
      for (let shift = 0; shift < 6; shift++) {
        const text = " ".repeat(shift) + before + unit.repeat(searched + 1) + after;
        assert.equal(told(text), null, unit);
      }
    }
  });

  it("tells nothing of what stands before", () => {
    const secret = "s3cret".repeat(5_000);
    assert.equal(
      told(`${'{"a":'.repeat(900)}"${secret}" ?`),
      `line 1, column ${900 * 5 + secret.length + 4}: unexpected "?"`,
    );
  });

  it("is not looked for in what is nested too deeply", () => {
    assert.equal(told(`${'{"a":'.repeat(20_000)} ?`), null);
  });
});
