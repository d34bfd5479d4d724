// A form that goes by: its fields are read whatever the chunks, nothing but the file may be large, and no trick makes it so.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import { boundaryOf, createFormWatch, fieldLimit, formType } from "../../../src/speech/form-watch.ts";
import { aiffSaying, wavSaying } from "../../support/sounds.ts";
import { form } from "../../support/whisper.ts";

const boundary = "----speech-test-boundary";
const large = "x".repeat(fieldLimit + 1);

function watched(body: Buffer, step: number): { fields: Record<string, string>; hasFile: boolean } {
  const watch = createFormWatch(boundary);
  for (let at = 0; at < body.length; at += step) watch.see(body.subarray(at, at + step));
  return { fields: Object.fromEntries(watch.fields), hasFile: watch.hasFile() };
}

function refused(body: Buffer, step = 7): string {
  try {
    watched(body, step);
  } catch (error) {
    if (error instanceof GatewayError && error.code === "invalid_request") return error.message;
    throw error;
  }
  return "taken";
}

/** A form of one part with these headers. */
function part(headers: string, content: string): Buffer {
  return Buffer.from(`--${boundary}\r\n${headers}\r\n\r\n${content}\r\n--${boundary}--\r\n`);
}

describe("a form that goes by", () => {
  it("is read whatever the chunks are, and a file may look like its end", () => {
    const file = Buffer.from(`\r\n--\r\n----speech-test\r\n${large}`);
    const body = form({ model: "whisper-1", file, language: "de", prompt: "Grüße" });
    for (const step of [1, 2, 3, 29, body.length])
      assert.deepEqual(watched(body, step), {
        fields: { model: "whisper-1", language: "de", prompt: "Grüße" },
        hasFile: true,
      });
    assert.deepEqual(watched(form({ model: "" }), 5), { fields: { model: "" }, hasFile: false });
    assert.deepEqual(watched(Buffer.concat([Buffer.from("a preamble\r\n"), form({ a: "b" })]), 4).fields, { a: "b" });
  });

  it("has no large field but the file, and is refused as soon as that shows", () => {
    assert.equal(refused(form({ prompt: "x".repeat(fieldLimit) })), "taken");
    assert.match(refused(form({ prompt: large })), /^the field "prompt" has more than 4096 bytes/);
    const watch = createFormWatch(boundary);
    const [begun] = form({ prompt: "END" }).toString().split("END");
    watch.see(Buffer.from(begun ?? ""));
    assert.throws(() => watch.see(Buffer.alloc(2 * fieldLimit, "x")), /more than 4096/);
  });

  it("does not take for the file what the engine may take for a field", () => {
    for (const headers of [
      'Content-Disposition: form-data; name="prompt"; filename="file"',
      'Content-Disposition: form-data; filename="a; name=prompt"; name="file"',
      'Content-Disposition: form-data; name="file"; name="prompt"',
      'Content-Disposition: form-data; name="file"\r\nContent-Disposition: form-data; name="prompt"',
      "Content-Type: text/plain",
    ])
      assert.match(refused(part(headers, large)), /more than 4096 bytes/, headers);
    for (const headers of [
      "content-disposition: form-data; name=file; filename=a.wav",
      'Content-Disposition: form-data; name="file"; filename="a;b; name=x.wav"',
      'Content-Disposition: form-data; name="file"; filename="a\\"; name=\\"prompt"',
    ])
      assert.equal(refused(part(headers, large)), "taken", headers);
  });

  it("has sound as long as it says, whatever the chunks are", () => {
    for (const step of [1, 1_000, 100_000]) {
      assert.equal(refused(form({ file: aiffSaying({ samples: 1_600 }), model: "x" }), step), "taken");
      assert.match(refused(form({ file: aiffSaying({ samples: 100_000 }) }), step), /fewer samples than it says/);
      assert.match(refused(form({ file: wavSaying({ rate: 1 }) }), step), /1 samples a second/);
    }
  });

  it("has an end, a beginning and not too many parts", () => {
    const body = form({ model: "x" });
    assert.match(refused(Buffer.concat([body, body])), /after the form's last boundary/);
    assert.match(refused(Buffer.alloc(20_000, "-")), /does not begin with the boundary that its Content-Type names/);
    assert.match(refused(part(`X-Long: ${"x".repeat(9_000)}`, "")), /more than 8192/);
    const many = Object.fromEntries(Array.from({ length: 101 }, (_, i) => [`f${i}`, "x"]));
    assert.match(refused(form(many)), /more than 100 parts/);
    assert.match(refused(Buffer.from(`--${boundary}\r\n\r\nx\r\n--${boundary}-y`)), /goes on with something else/);
  });

  it("tells its boundary in any case, and is announced to the engine in the one that it reads", () => {
    assert.equal(boundaryOf("multipart/form-data; boundary=abc"), "abc");
    assert.equal(boundaryOf('MULTIPART/Form-Data; charset=utf-8; BOUNDARY="a b:c"'), "a b:c");
    for (const type of [
      "multipart/form-data",
      "text/plain; boundary=a",
      "multipart/form-data; boundary=",
      "a;boundary=b",
    ])
      assert.equal(boundaryOf(type), null, type);
    assert.equal(formType("----a1"), "multipart/form-data; boundary=----a1");
    assert.equal(formType("a b:c"), 'multipart/form-data; boundary="a b:c"');
  });

  it("has numbers where the engine reads numbers", () => {
    for (const [name, value] of [
      ["temperature", "abc"],
      ["temperature", ""],
      ["temperature_inc", "0.0000001"],
      ["max_len", "1.5"],
      ["beam_size", "999999"],
      ["audio_ctx", "99999"],
      ["vad", "true"],
    ] as const) {
      const error: unknown = (() => {
        try {
          watched(form({ [name]: value }), 11);
        } catch (thrown) {
          return thrown;
        }
        return null;
      })();
      assert.ok(error instanceof GatewayError, name);
      assert.deepEqual([error.code, error.param], ["invalid_request", name]);
      assert.match(error.message, new RegExp(`^${name} `));
    }
    const good = { temperature: "0.2", beam_size: "5", audio_ctx: "0", vad: "false", language: "", max_len: "-1" };
    assert.deepEqual(watched(form(good), 13).fields, good);
  });
});
