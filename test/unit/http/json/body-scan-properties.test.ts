// The byte scanner against JSON.parse on random documents: what it finds, what it refuses, what a splice leaves alone.

import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { type BodyScan, type JsonSpan, readValue, scanBody } from "../../../../src/http/json/body-scan.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
const wanted = ["model", "stream", "n", "é\n"];

function scan(text: string, keys: readonly string[] = wanted): BodyScan {
  const result = scanBody(encoder.encode(text), keys);
  assert.ok(result.ok, `refused: ${text}`);
  return result;
}

function valueAt(body: Uint8Array, span: JsonSpan): unknown {
  return JSON.parse(decoder.decode(body.subarray(span.start, span.end)));
}

function isObject(value: unknown): boolean {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The body with another value at a span. */
function spliced(body: Uint8Array, { start, end }: JsonSpan, text: string): Uint8Array {
  return Buffer.concat([body.subarray(0, start), encoder.encode(text), body.subarray(end)]);
}

const space = fc.stringMatching(/^[ \n\r\t]{0,3}$/);

/** A JSON string literal in which each character is written plainly or as an escape. */
const literal = fc
  .tuple(fc.string({ unit: "binary", maxLength: 90 }), fc.infiniteStream(fc.boolean()))
  .map(([text, escapes]) => literalOf(text, escapes));

function literalOf(text: string, escapes: Iterator<boolean>): string {
  let out = "";
  for (const char of text) {
    const plain = JSON.stringify(char).slice(1, -1);
    const escaped = [...Array(char.length).keys()]
      .map((at) => `\\u${char.charCodeAt(at).toString(16).padStart(4, "0")}`)
      .join("");
    out += escapes.next().value === true ? escaped : plain;
  }
  return `"${out}"`;
}

const key = fc.oneof(
  {
    weight: 3,
    arbitrary: fc.constantFrom('"model"', '"mod\\u0065l"', '"stream"', '"n"', '"\\u00e9\\n"', '"é\\u000a"'),
  },
  { weight: 1, arbitrary: literal },
);

const { value: jsonText } = fc.letrec<{ value: string; array: string; object: string }>((tie) => ({
  value: fc.oneof(
    { depthSize: "small", withCrossShrink: true },
    fc.oneof(
      literal,
      fc.constantFrom("true", "false", "null", "0", "-0", "1.5e+3", "-12E-1"),
      fc.integer().map(String),
    ),
    tie("array"),
    tie("object"),
  ),
  array: fc
    .tuple(fc.array(fc.tuple(space, tie("value"), space), { maxLength: 4 }), space)
    .map(([items, inner]) => `[${items.length === 0 ? inner : items.map((item) => item.join("")).join(",")}]`),
  object: fc.tuple(members(tie("value")), space).map(([list, inner]) => `{${list === "" ? inner : list}}`),
}));

function members(value: fc.Arbitrary<string>): fc.Arbitrary<string> {
  return fc
    .array(fc.tuple(space, key, space, value, space), { maxLength: 5 })
    .map((list) => list.map(([a, name, b, text, c]) => `${a}${name}${b}:${text}${c}`).join(","));
}

const objectText = fc
  .tuple(space, members(jsonText), space, space)
  .map(([before, list, inner, after]) => `${before}{${list === "" ? inner : list}}${after}`);

test("every wanted member of a random object is found with JSON.parse's value", () => {
  fc.assert(
    fc.property(objectText, (text) => {
      const body = encoder.encode(text);
      const parsed = JSON.parse(text) as Record<string, unknown>;
      const result = scan(text);
      for (const name of wanted) {
        const span = result.members.get(name);
        assert.equal(span !== undefined, Object.hasOwn(parsed, name), name);
        if (!span) continue;
        assert.deepEqual(valueAt(body, span), parsed[name]);
        assert.deepEqual(readValue(body, span), parsed[name]);
      }
    }),
    { numRuns: 1500 },
  );
});

test("a truncated body is never taken for a whole one", () => {
  fc.assert(
    fc.property(objectText, fc.nat(), (text, at) => {
      const whole = encoder.encode(text.trimEnd());
      const cut = whole.subarray(0, at % whole.length);
      const result = scanBody(cut, wanted);
      assert.equal(result.ok, false);
      if (!result.ok) assert.ok(result.position <= cut.length);
    }),
    { numRuns: 1500 },
  );
});

test("what JSON.parse takes, a damaged body included, the scanner takes with the same values, and nothing else", () => {
  fc.assert(
    fc.property(
      objectText,
      fc.nat(),
      fc.constantFrom(...'{}[],:"\\ 019-+.eEtfnx'.split("")),
      fc.boolean(),
      (text, at, char, drop) => {
        const index = at % text.length;
        // Through bytes and back, as a character that was cut in half has no bytes of its own.
        const damaged = decoder.decode(
          encoder.encode(text.slice(0, index) + char + text.slice(index + (drop ? 1 : 0))),
        );
        let parsed: unknown;
        try {
          parsed = JSON.parse(damaged);
        } catch {
          // Not JSON: any value that is read must stand in the text as it is, so there is nothing more to compare.
          const body = encoder.encode(damaged);
          const result = scanBody(body, wanted);
          // The inside of strings is all that the scanner leaves unchecked: with those emptied it is JSON.
          if (result.ok) JSON.parse(damaged.replaceAll(/"(?:[^"\\]|\\[^])*"/g, '""'));
          return;
        }
        const body = encoder.encode(damaged);
        const result = scanBody(body, wanted);
        assert.equal(result.ok, isObject(parsed));
        if (!result.ok) return;
        for (const name of wanted) {
          const span = result.members.get(name);
          assert.deepEqual(span && valueAt(body, span), (parsed as Record<string, unknown>)[name]);
        }
      },
    ),
    { numRuns: 2500 },
  );
});

test("a splice changes that member and nothing else", () => {
  fc.assert(
    fc.property(objectText, literal, (text, replacement) => {
      const body = encoder.encode(text);
      for (const [name, span] of scan(text).members) {
        const after = decoder.decode(spliced(body, span, replacement));
        assert.deepEqual(JSON.parse(after), { ...JSON.parse(text), [name]: JSON.parse(replacement) });
        const replaced = scan(after).members.get(name);
        assert.ok(replaced);
        const back = decoder.decode(body.subarray(span.start, span.end));
        assert.deepEqual(spliced(encoder.encode(after), replaced, back), Buffer.from(body));
      }
    }),
    { numRuns: 500 },
  );
});
