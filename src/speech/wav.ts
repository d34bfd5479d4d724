// WAV files and the sound in them, 16 bits a sample: read strictly, joined, written with a right header. Pure.
import { GatewayError } from "../core/errors.ts";

export interface Pcm {
  /** Samples per second. */
  readonly sampleRate: number;
  readonly channels: number;
  /** Interleaved where there are several channels. */
  readonly samples: Int16Array;
}

const headerBytes = 44;
/** What programs that write into a pipe put where the length is not known. */
const unknownLength = 0xffff_ffff;

/**
 * The sound of a WAV file whose header is as {@link wavHeader} writes it, and Piper. Throws `upstream_failed`: what an engine
 * calls sound may be a web page, and sound that ends in half a sample turns all that follows into noise.
 */
export function parseWav(bytes: Uint8Array): Pcm {
  const file = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (file.length < headerBytes) throw bad(`it has ${file.length} bytes`);
  const format = { channels: file.readUInt16LE(22), sampleRate: file.readUInt32LE(24) };
  const isPlausible = format.channels >= 1 && format.channels <= 8 && format.sampleRate <= 384_000;
  const sound = file.subarray(headerBytes);
  const headers = isPlausible ? [wavHeader(format, sound.length), wavHeader(format, null)] : [];
  if (!headers.some((header) => file.subarray(0, headerBytes).equals(header)))
    throw bad(`its header is none of PCM with 16 bits and ${sound.length} bytes`);
  if (sound.length % (2 * format.channels) !== 0) throw bad(`${sound.length} bytes are no whole number of samples`);
  const samples = new Int16Array(sound.length / 2);
  // Copied: in the file they may begin at an odd place.
  sampleBytes(samples).set(sound);
  return { ...format, samples };
}

/** A header of 44 bytes; `dataBytes` is null where the sound is sent before its length is known. */
export function wavHeader(format: Omit<Pcm, "samples">, dataBytes: number | null): Uint8Array {
  const { sampleRate, channels } = format;
  if (dataBytes !== null && dataBytes > unknownLength - headerBytes) throw bad("more than 4 GB do not fit into it");
  const header = Buffer.alloc(headerBytes);
  header.write("RIFF", 0);
  header.writeUInt32LE(dataBytes === null ? unknownLength : dataBytes + headerBytes - 8, 4);
  header.write("WAVEfmt ", 8);
  header.writeUInt32LE(16, 16);
  header.writeUInt16LE(1, 20);
  header.writeUInt16LE(channels, 22);
  header.writeUInt32LE(sampleRate, 24);
  header.writeUInt32LE(sampleRate * channels * 2, 28);
  header.writeUInt16LE(channels * 2, 32);
  header.writeUInt16LE(16, 34);
  header.write("data", 36);
  header.writeUInt32LE(dataBytes ?? unknownLength, 40);
  return header;
}

/** The bytes of samples as they stand in a file: every machine that the engines run on is little-endian, too. */
export function sampleBytes(samples: Int16Array): Uint8Array {
  return new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength);
}

/** A whole file of sounds of one format, one after the other. Throws `upstream_failed` where their formats differ. */
export function wavFile(parts: readonly Pcm[]): Uint8Array {
  const [first] = parts;
  if (!first) throw bad("there is nothing to put into it");
  for (const part of parts) requireSameFormat(first, part);
  const length = parts.reduce((sum, { samples }) => sum + samples.length * 2, 0);
  return Buffer.concat([wavHeader(first, length), ...parts.map(({ samples }) => sampleBytes(samples))]);
}

/** Whole samples of silence: half of one would turn all that follows into noise. */
export function silence({ sampleRate, channels }: Omit<Pcm, "samples">, milliseconds: number): Pcm {
  return {
    sampleRate,
    channels,
    samples: new Int16Array(Math.round((sampleRate * milliseconds) / 1000) * channels),
  };
}

/** The loudest place at full scale, as Piper does with each sentence. What is all but silent is not made loud. */
export function normalizedSamples(sound: Float32Array): Int16Array {
  let peak = 0.01;
  for (let index = 0; index < sound.length; index++) peak = Math.max(peak, Math.abs(sound[index] ?? 0));
  const samples = new Int16Array(sound.length);
  for (let index = 0; index < sound.length; index++) samples[index] = Math.round(((sound[index] ?? 0) / peak) * 32_767);
  return samples;
}

/** Throws `upstream_failed` for sounds that cannot be joined as they are. */
export function requireSameFormat(first: Omit<Pcm, "samples">, next: Omit<Pcm, "samples">): void {
  if (first.sampleRate === next.sampleRate && first.channels === next.channels) return;
  throw bad(`${next.sampleRate} Hz and ${next.channels} channels follow ${first.sampleRate} Hz and ${first.channels}`);
}

function bad(why: string): GatewayError {
  return new GatewayError("upstream_failed", `the speech engine's answer is no WAV file: ${why}`);
}
