// Files of sound whose headers say what a test wants them to say.
import { someSound } from "./whisper.ts";

/** WAV; `RIFX` has the most significant byte first. Default: what {@link someSound} is. */
export function wavSaying({
  name = "RIFF",
  rate = 16_000,
  channels = 1,
  bits = 16,
  tag = 1,
  before = Buffer.alloc(0),
}: {
  readonly name?: "RIFF" | "RIFX" | "RF64";
  readonly rate?: number;
  readonly channels?: number;
  readonly bits?: number;
  readonly tag?: number;
  /** Chunks before the one that says all this. */
  readonly before?: Buffer;
}): Buffer {
  const sound = someSound();
  const big = name === "RIFX";
  sound.write(name, 0);
  for (const [at, bytes, value] of [
    [16, 4, 16],
    [20, 2, tag],
    [22, 2, channels],
    [24, 4, rate],
    [34, 2, bits],
    [40, 4, sound.length - 44],
  ] as const)
    if (big) sound.writeUIntBE(value, at, bytes);
    else sound.writeUIntLE(value, at, bytes);
  return Buffer.concat([sound.subarray(0, 12), before, sound.subarray(12)]);
}

/** A chunk of a WAV file. */
export function chunk(name: string, body: Buffer): Buffer {
  const header = Buffer.alloc(8);
  header.write(name, 0);
  header.writeUInt32LE(body.length, 4);
  return Buffer.concat([header, body, Buffer.alloc(body.length % 2)]);
}

/** The same in Sony's form for long files. */
export function wave64Saying(rate: number): Buffer {
  const sound = someSound();
  const rest = Buffer.from("f3acd3118cd100c04f8edb8a", "hex");
  const sized = (name: string, body: Buffer): Buffer => {
    const size = Buffer.alloc(8);
    size.writeBigUInt64LE(BigInt(24 + body.length));
    return Buffer.concat([Buffer.from(name), rest, size, body]);
  };
  const format = Buffer.from(sound.subarray(20, 36));
  format.writeUInt32LE(rate, 4);
  const riff = sized("riff", Buffer.alloc(0));
  Buffer.from("2e91cf11a5d628db04c10000", "hex").copy(riff, 4);
  const body = [sized("fmt ", format), sized("data", sound.subarray(44))];
  return Buffer.concat([riff, Buffer.from("wave"), rest, ...body]);
}

/** AIFF with a tenth of a second of sound. */
export function aiffSaying({ rate = 16_000, samples = 1_600 }: { rate?: number; samples?: number } = {}): Buffer {
  const exponent = Math.floor(Math.log2(rate));
  const common = Buffer.alloc(26);
  common.write("COMM", 0);
  common.writeUInt32BE(18, 4);
  common.writeUInt16BE(1, 8);
  common.writeUInt32BE(samples, 10);
  common.writeUInt16BE(16, 14);
  common.writeUInt16BE(16_383 + exponent, 16);
  common.writeUInt32BE(rate * 2 ** (31 - exponent), 18);
  const sound = Buffer.alloc(16 + 3_200, 0x10);
  sound.write("SSND", 0);
  sound.writeUInt32BE(sound.length - 8, 4);
  sound.fill(0, 8, 16);
  const form = Buffer.from("FORM0000AIFF");
  form.writeUInt32BE(4 + common.length + sound.length, 4);
  return Buffer.concat([form, common, sound]);
}

/** The beginning of a FLAC file. */
export function flacSaying({ rate, samples }: { readonly rate: number; readonly samples: number }): Buffer {
  const head = Buffer.alloc(2_042);
  head.write("fLaC", 0);
  head[4] = 0x80;
  head[7] = 34;
  head.writeUInt16BE(4_096, 8);
  head.writeUInt16BE(4_096, 10);
  head.writeBigUInt64BE((BigInt(rate) << 44n) | (15n << 36n) | BigInt(samples), 18);
  return head;
}
