// What a file of sound says of itself in its first bytes, before an engine believes it. whisper-server makes 16,000 samples of
// each second, all in memory: of a WAV of 32 KB that says one sample is a second it makes 2.6 GB, and for as many samples as
// an AIFF or FLAC says it has it takes the memory before it looks for them. Pure.
import { GatewayError } from "../core/errors.ts";

/** How much of a file is looked at. */
export const headBytes = 64 * 1024;

const rates = { least: 4_000, most: 768_000 } as const;
const mostChannels = 32;
const mostBits = 64;
const longestHours = 12;

/** How the chunks of a file are written. */
interface Layout {
  /** Where the first one begins. */
  readonly from: number;
  /** Of a chunk's name, of which the first four letters are told; its size follows. */
  readonly nameBytes: 4 | 16;
  readonly isBigEndian: boolean;
}

interface Chunk {
  readonly name: string;
  /** As far as it is here. */
  readonly body: Buffer;
}

const wave64 = Buffer.from("2e91cf11a5d628db04c10000", "hex");

/**
 * `head`: the file's first bytes, {@link headBytes} of them or all that it has. Throws `invalid_request` over sound that says
 * what no sound is, `sound_too_long`. What is no WAV, AIFF or FLAC is not judged. Gives how many bytes the file must have at
 * least: where an AIFF has fewer samples than it says, the engine works through silence.
 */
export function checkSound(head: Buffer): number {
  if (head.toString("latin1", 0, 3) === "ID3" && head.length >= 10) return checkTagged(head);
  const [name, kind] = [head.toString("latin1", 0, 4), head.toString("latin1", 8, 12)];
  if (["RIFF", "RF64", "RIFX"].includes(name) && kind === "WAVE")
    checkWav(head, { from: 12, nameBytes: 4, isBigEndian: name === "RIFX" });
  else if (name === "riff" && head.subarray(4, 16).equals(wave64))
    checkWav(head, { from: 40, nameBytes: 16, isBigEndian: false });
  else if (name === "FORM" && (kind === "AIFF" || kind === "AIFC")) return checkAiff(head);
  else if (name === "fLaC" && head.length >= 26) checkFlac(head);
  return 0;
}

/** Tags may stand before a FLAC, too. Where they are longer than what is looked at, it is an MP3 with a picture. */
function checkTagged(head: Buffer): number {
  // Seven bits of each byte.
  const size = [6, 7, 8, 9].reduce((sum, at) => sum * 128 + (head.readUInt8(at) & 0x7f), 0);
  const hasFooter = (head.readUInt8(5) & 0x10) !== 0;
  return checkSound(head.subarray(10 + size + (hasFooter ? 10 : 0)));
}

function checkWav(head: Buffer, layout: Layout): void {
  const number = (body: Buffer, at: number, bytes: number): number =>
    layout.isBigEndian ? body.readUIntBE(at, bytes) : body.readUIntLE(at, bytes);
  let isDescribed = false;
  for (const { name, body } of chunksOf(head, layout)) {
    if (name === "data") return;
    // The engine takes the last one.
    if (name !== "fmt ") continue;
    if (body.length < 16) throw hidden("fmt");
    checkFormat(number(body, 4, 4), number(body, 2, 2), number(body, 14, 2));
    isDescribed = true;
  }
  if (!isDescribed && head.length >= headBytes) throw hidden("fmt");
}

function checkAiff(head: Buffer): number {
  for (const { name, body } of chunksOf(head, { from: 12, nameBytes: 4, isBigEndian: true })) {
    if (name !== "COMM") continue;
    if (body.length < 18) throw hidden("COMM");
    // A number of 80 bits: the exponent, and a mantissa whose first bit is a one.
    const rate = body.readUInt32BE(10) * 2 ** ((body.readUInt16BE(8) & 0x7fff) - 16_383 - 31);
    checkFormat(rate, body.readUInt16BE(0), body.readUInt16BE(6));
    const samples = body.readUInt32BE(2);
    checkLength(samples, rate);
    // No kind of it needs less than a bit for each.
    return samples / 8;
  }
  if (head.length >= headBytes) throw hidden("COMM");
  return 0;
}

/** What it says of itself stands in its first block. */
function checkFlac(head: Buffer): void {
  const rate = head.readUIntBE(18, 3) >> 4;
  checkFormat(rate, 1, 16);
  checkLength((head.readUInt8(21) & 0x0f) * 2 ** 32 + head.readUInt32BE(22), rate);
}

function* chunksOf(head: Buffer, { from, nameBytes, isBigEndian }: Layout): Generator<Chunk> {
  const isLong = nameBytes === 16;
  const headerBytes = isLong ? 24 : 8;
  for (let at = from; at + headerBytes <= head.length; ) {
    const size = isLong
      ? Number(head.readBigUInt64LE(at + nameBytes)) - headerBytes
      : isBigEndian
        ? head.readUInt32BE(at + nameBytes)
        : head.readUInt32LE(at + nameBytes);
    const body = at + headerBytes;
    const end = body + Math.max(0, size);
    yield { name: head.toString("latin1", at, at + 4), body: head.subarray(body, end) };
    // They begin at even places, the long ones at every eighth byte.
    const step = isLong ? 8 : 2;
    at = Math.ceil(end / step) * step;
  }
}

function checkFormat(rate: number, channels: number, bits: number): void {
  if (!(rate >= rates.least && rate <= rates.most))
    throw unlikely(`${rate} samples a second; it takes ${rates.least} to ${rates.most}`);
  if (channels < 1 || channels > mostChannels) throw unlikely(`${channels} channels; it takes 1 to ${mostChannels}`);
  if (bits > mostBits) throw unlikely(`${bits} bits a sample; it takes at most ${mostBits}`);
}

function checkLength(samples: number, rate: number): void {
  const hours = samples / rate / 3_600;
  if (hours <= longestHours) return;
  throw new GatewayError(
    "sound_too_long",
    `the sound says that it is ${Math.round(hours)} hours long; it takes ${longestHours}`,
    { param: "file" },
  );
}

function unlikely(what: string): GatewayError {
  return new GatewayError("invalid_request", `the sound says that it has ${what}`, { param: "file" });
}

function hidden(chunk: string): GatewayError {
  const message = `the sound does not say what it is: there is no whole ${chunk} chunk in its first ${headBytes} bytes`;
  return new GatewayError("invalid_request", message, { param: "file" });
}
