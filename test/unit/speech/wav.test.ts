// WAV files: what is taken for one, and sound that was joined, listened to by its numbers.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { GatewayError } from "../../../src/core/errors.ts";
import {
  normalizedSamples,
  type Pcm,
  parseWav,
  sampleBytes,
  silence,
  wavFile,
  wavHeader,
} from "../../../src/speech/wav.ts";

function tone(hertz: number, seconds: number, sampleRate = 22_050, phase = 0): Pcm {
  const samples = Int16Array.from({ length: Math.round(seconds * sampleRate) }, (_, i) =>
    Math.round(30_000 * Math.sin(phase + (2 * Math.PI * hertz * i) / sampleRate)),
  );
  return { sampleRate, channels: 1, samples };
}

describe("a WAV file", () => {
  it("has the header that Piper's have", () => {
    const file = wavFile([{ sampleRate: 22_050, channels: 1, samples: Int16Array.of(1, -2) }]);
    assert.equal(
      Buffer.from(file).toString("hex"),
      "524946462800000057415645666d7420100000000100010022560000" +
        "44ac0000" +
        "02001000" +
        "64617461" +
        "04000000" +
        "0100feff",
    );
  });

  it("is read as it was written, and so is one in a buffer of something else", () => {
    const sound = tone(440, 0.1);
    const file = wavFile([sound]);
    assert.deepEqual(parseWav(file), sound);
    const inside = Buffer.concat([Buffer.alloc(3), file, Buffer.alloc(5)]).subarray(3, 3 + file.length);
    assert.deepEqual(parseWav(inside), sound);
  });

  it("that is sent before its length is known is read to its end", () => {
    const sound = tone(440, 0.05, 16_000);
    const file = Buffer.concat([wavHeader(sound, null), sampleBytes(sound.samples)]);
    assert.equal(file.readUInt32LE(4), 0xffffffff);
    assert.deepEqual(parseWav(file), sound);
  });

  const good = Buffer.from(wavFile([tone(440, 0.01)]));
  const changed = (at: number, value: number, bytes: 2 | 4 = 2): Buffer => {
    const copy = Buffer.from(good);
    if (bytes === 2) copy.writeUInt16LE(value, at);
    else copy.writeUInt32LE(value, at);
    return copy;
  };
  const broken: readonly (readonly [what: string, bytes: Buffer])[] = [
    ["a web page", Buffer.from("<!doctype html>\n<title>500 Internal Server Error</title>")],
    ["nothing", Buffer.alloc(0)],
    ["a header alone, cut", good.subarray(0, 40)],
    ["less sound than it says", good.subarray(0, -1)],
    ["an odd number of bytes", changed(40, 7, 4)],
    ["floating point", changed(20, 3)],
    ["8 bits", changed(34, 8)],
    ["no channels", changed(22, 0)],
    ["a wrong block size", changed(32, 4)],
    ["an impossible rate", changed(24, 12, 4)],
    ["a part larger than the file", changed(16, 5_000, 4)],
  ];
  for (const [what, bytes] of broken) {
    it(`is refused: ${what}`, () => {
      assert.throws(
        () => parseWav(bytes),
        (error) => error instanceof GatewayError && error.code === "upstream_failed",
      );
    });
  }

  it("is not made of sounds that differ, nor of none", () => {
    assert.throws(() => wavFile([tone(440, 0.01), tone(440, 0.01, 16_000)]), /16000 Hz and 1 channels follow 22050/);
    assert.throws(() => wavFile([]));
  });
});

describe("sounds that are joined", () => {
  it("with silence between them have whole samples, whatever the rate and pause", () => {
    for (const sampleRate of [16_000, 22_050, 44_100])
      for (const ms of [1, 7, 100, 150, 333]) {
        const pause = silence({ sampleRate, channels: 2 }, ms);
        assert.equal(pause.samples.length % 2, 0);
        assert.ok(Math.abs(pause.samples.length / 2 / sampleRate - ms / 1000) < 1 / sampleRate);
      }
  });

  it("are as loud as can be, but for near silence", () => {
    assert.deepEqual(normalizedSamples(Float32Array.of(0, 0.25, -0.5)), Int16Array.of(0, 16_384, -32_767));
    assert.ok(normalizedSamples(Float32Array.of(0, 0.0001)).every((sample) => Math.abs(sample) < 500));
    assert.equal(normalizedSamples(new Float32Array()).length, 0);
  });
});
