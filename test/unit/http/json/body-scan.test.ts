// The byte scanner on single documents: nesting, escapes, refusals, and how little of a large body it reads.

import assert from "node:assert/strict";
import { test } from "node:test";
import { type BodyScan, readValue, scanBody } from "../../../../src/http/json/body-scan.ts";

const encoder = new TextEncoder();

function scanned(text: string, keys: readonly string[]): BodyScan {
  const result = scanBody(encoder.encode(text), keys);
  assert.ok(result.ok, `refused: ${text}`);
  return result;
}

function modelOf(text: string): unknown {
  return readValue(encoder.encode(text), scanned(text, ["model"]).members.get("model"));
}

test("members of nested values and text inside strings are not taken", () => {
  const text =
    '{"messages":[{"model":"x","content":"\\"model\\":\\"y\\",\\\\"}],"o":{"model":"z"},"model":"right","p":["model"]}';
  assert.equal(modelOf(text), "right");
  assert.equal(scanned('{"messages":[{"model":"x"}]}', ["model"]).members.size, 0);
});

test("runs of backslashes before a quote in a long string", () => {
  for (const pad of [0, 60, 63, 64, 65, 200]) {
    for (let run = 0; run < 6; run++) {
      const content = `${"a".repeat(pad)}${"\\".repeat(run)}" ,"model":"no"${"b".repeat(pad)}${"\\".repeat(run)}`;
      const text = JSON.stringify({ content, model: "yes" });
      assert.equal(modelOf(text), "yes");
    }
  }
});

test("refusals name the offset where it goes wrong", () => {
  const table: readonly (readonly [string, number])[] = [
    ["", 0],
    ["  ", 2],
    ["[]", 0],
    ["null", 0],
    ["{", 1],
    ['{"model"', 8],
    ['{"model":', 9],
    ['{"model":"a"', 12],
    ['{"model":"a', 11],
    ['{"model":"a",}', 13],
    ['{"model":"a"} x', 14],
    ['{"model":"a"}{}', 13],
    ['{"model":tru}', 9],
    ['{"model":01}', 10],
    ['{"model":[1,]}', 12],
    ['{"model":[1}', 11],
    ['{"mod\\x65l":"a"}', 1],
    ["{'model':1}", 1],
    ["\ufeff{}", 0],
  ];
  for (const [text, position] of table) {
    assert.deepEqual(scanBody(encoder.encode(text), ["model"]), { ok: false, position }, text);
  }
});

test("nesting is followed to a depth, and refused beyond it", () => {
  const nested = (depth: number) => `{"a":${"[".repeat(depth)}${"]".repeat(depth)},"model":"m"}`;
  assert.equal(modelOf(nested(999)), "m");
  assert.equal(scanBody(encoder.encode(nested(1000)), []).ok, false);
  assert.equal(scanBody(encoder.encode("[".repeat(1e6)), []).ok, false);
});

test("a string that is no valid JSON string is not read", () => {
  const raw = Uint8Array.of(...encoder.encode('{"model":"a'), 0xff, ...encoder.encode('"}'));
  const result = scanBody(raw, ["model"]);
  assert.ok(result.ok);
  assert.equal(readValue(raw, result.members.get("model")), undefined);
  for (const text of ['{"model":"a\\x"}', '{"model":"a\nb"}']) {
    assert.equal(modelOf(text), undefined);
  }
});

/** The body, counting what is read of it one byte at a time and what is handed on to be decoded. */
function counted(body: Uint8Array): { readonly body: Uint8Array; readonly read: { single: number; decoded: number } } {
  const read = { single: 0, decoded: 0 };
  const subarray = (start: number, end: number): Uint8Array => {
    read.decoded += end - start;
    return body.subarray(start, end);
  };
  const get = (target: Uint8Array, key: string | symbol): unknown => {
    if (typeof key === "string" && /^\d+$/.test(key)) read.single++;
    if (key === "subarray") return subarray;
    const value: unknown = Reflect.get(target, key);
    return typeof value === "function" ? (value.bind(target) as unknown) : value;
  };
  return { body: new Proxy(body, { get }), read };
}

// What makes it fast. The time itself is for `npm run bench -- scan`: a bound of 30 ms failed on busy machines.
test("20 MB of image are skipped by the native search: few bytes are read singly, none are decoded", () => {
  const image = "iVBORw0K".repeat(2.5e6);
  const text = JSON.stringify({
    messages: [
      { role: "user", content: [{ type: "image_url", image_url: { url: `data:image/png;base64,${image}` } }] },
    ],
    model: "m",
  });
  const { body, read } = counted(encoder.encode(text));
  const result = scanBody(body, ["model", "stream"]);
  assert.ok(result.ok);
  assert.equal(readValue(body, result.members.get("model")), "m");
  const rest = text.length - image.length;
  assert.ok(read.single < 4 * rest, `${read.single} bytes one by one, of ${rest} beside the image`);
  assert.ok(read.decoded < rest, `${read.decoded} bytes decoded`);
});
