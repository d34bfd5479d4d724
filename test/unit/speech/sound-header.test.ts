// What a file of sound says of itself: what no sound is, is refused by its first bytes, and what is unusual is not.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { toGatewayError } from "../../../src/core/errors.ts";
import { checkSound, headBytes } from "../../../src/speech/sound-header.ts";
import { aiffSaying, chunk, flacSaying, wave64Saying, wavSaying } from "../../support/sounds.ts";
import { someSound } from "../../support/whisper.ts";

function judged(file: Buffer): string {
  try {
    checkSound(file.subarray(0, headBytes));
  } catch (error) {
    const { code, param, message } = toGatewayError(error);
    assert.equal(param, "file");
    return `${code}: ${message}`;
  }
  return "taken";
}

const format = (rate: number): Buffer => {
  const body = Buffer.from(wavSaying({ rate }).subarray(20, 36));
  return chunk("fmt ", body);
};

describe("the first bytes of a sound", () => {
  it("of every kind that is read, and of none, are taken", () => {
    for (const [what, file] of [
      ["WAV", someSound()],
      ["8 kHz", wavSaying({ rate: 8_000 })],
      ["192 kHz, eight channels, 32 bits", wavSaying({ rate: 192_000, channels: 8, bits: 32 })],
      ["RIFX", wavSaying({ name: "RIFX" })],
      ["RF64", wavSaying({ name: "RF64", before: chunk("ds64", Buffer.alloc(28)) })],
      ["chunks before its format, one of odd length", wavSaying({ before: chunk("bext", Buffer.alloc(6_001)) })],
      [
        "much between its format and its sound",
        wavSaying({ before: Buffer.concat([format(16_000), chunk("id3 ", Buffer.alloc(99_999))]) }),
      ],
      ["Wave64", wave64Saying(16_000)],
      ["AIFF", aiffSaying({ rate: 44_100 })],
      ["FLAC", flacSaying({ rate: 44_100, samples: 44_100 * 3_600 })],
      ["FLAC of unknown length", flacSaying({ rate: 96_000, samples: 0 })],
      ["nothing", Buffer.alloc(0)],
      ["four letters", Buffer.from("RIFF")],
      ["a short head", wavSaying({}).subarray(0, 18)],
      ["MP3", Buffer.from("ID3 and so on")],
    ] as const)
      assert.equal(judged(file), "taken", what);
  });

  it("that would be multiplied are refused", () => {
    for (const file of [
      wavSaying({ rate: 1 }),
      wavSaying({ rate: 0xffff_ffff }),
      wavSaying({ name: "RIFX", rate: 50 }),
      wavSaying({ name: "RF64", rate: 3_999, before: chunk("ds64", Buffer.alloc(28)) }),
      // The engine believes the last one.
      wavSaying({ rate: 10, before: format(16_000) }),
      wavSaying({ rate: 16_000, before: format(10) }),
      wave64Saying(50),
      aiffSaying({ rate: 1 }),
      flacSaying({ rate: 100, samples: 1_000_000 }),
      // Behind a tag of 300 bytes.
      Buffer.concat([
        Buffer.from("ID3\x04\0\0\0\0\x02\x2c", "latin1"),
        Buffer.alloc(300),
        flacSaying({ rate: 1, samples: 9 }),
      ]),
    ])
      assert.match(judged(file), /^invalid_request: the sound says that it has \d+ samples a second; it takes 4000 to/);
    assert.match(judged(wavSaying({ channels: 0 })), /0 channels; it takes 1 to 32/);
    assert.match(judged(wavSaying({ channels: 254 })), /254 channels/);
    assert.match(judged(wavSaying({ bits: 999 })), /999 bits a sample/);
  });

  it("that say they are longer than a day's work are refused", () => {
    for (const file of [aiffSaying({ samples: 1_000_000_000 }), flacSaying({ rate: 16_000, samples: 2 ** 36 - 1 })])
      assert.match(judged(file), /^sound_too_long: the sound says that it is \d+ hours long; it takes 12/);
  });

  it("that hide what they are behind much else are refused", () => {
    const much = chunk("LIST", Buffer.alloc(headBytes));
    assert.match(
      judged(wavSaying({ rate: 1, before: much })),
      /^invalid_request: .* no whole fmt chunk in its first 65536 bytes/,
    );
    assert.match(
      judged(Buffer.concat([wavSaying({}).subarray(0, 12), chunk("fmt ", Buffer.alloc(4)), someSound()])),
      /no whole fmt/,
    );
    const aiff = aiffSaying();
    const hidden = Buffer.concat([
      aiff.subarray(0, 12),
      Buffer.from("ANNO\0\x01\0\0"),
      Buffer.alloc(65_536),
      aiff.subarray(12),
    ]);
    assert.match(judged(hidden), /no whole COMM chunk/);
  });
});
