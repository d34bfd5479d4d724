// WAV files and the sound in them, 16 bits a sample: read strictly, joined, written with a right header.
// Pure: bytes in, bytes out.
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

/** The sound of a WAV file. Throws `upstream_failed`: what an engine calls sound may be a web page. */
export function parseWav(bytes: Uint8Array): Pcm {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (bytes.length < 12 || tag(bytes, 0) !== "RIFF" || tag(bytes, 8) !== "WAVE") throw bad("it does not begin as one");
  let format: { sampleRate: number; channels: number } | null = null;
  for (let at = 12; at + 8 <= bytes.length; ) {
    const name = tag(bytes, at);
    const declared = view.getUint32(at + 4, true);
    const body = at + 8;
    if (name === "data") {
      if (!format) throw bad("its sound comes before its format");
      // Written as a stream: the sound goes on to the end.
      const size = declared === unknownLength ? bytes.length - body : declared;
      if (body + size > bytes.length) throw bad(`it ends after ${bytes.length - body} of ${size} bytes`);
      if (size % (2 * format.channels) !== 0) throw bad(`${size} bytes are no whole number of samples`);
      return { ...format, samples: samplesOf(view, body, size) };
    }
    if (body + declared > bytes.length) throw bad(`its part ${JSON.stringify(name)} is cut`);
    if (name === "fmt ") format = readFormat(view, body, declared);
    // Parts begin at even places.
    at = body + declared + (declared % 2);
  }
  throw bad("it has no sound");
}

/** A header of 44 bytes; `dataBytes` is null where the sound is sent before its length is known. */
export function wavHeader(format: Omit<Pcm, "samples">, dataBytes: number | null): Uint8Array {
  const { sampleRate, channels } = format;
  if (dataBytes !== null && dataBytes > unknownLength - headerBytes) throw bad("more than 4 GB do not fit into it");
  const bytes = new Uint8Array(headerBytes);
  const view = new DataView(bytes.buffer);
  putTag(bytes, 0, "RIFF");
  view.setUint32(4, dataBytes === null ? unknownLength : dataBytes + headerBytes - 8, true);
  putTag(bytes, 8, "WAVE");
  putTag(bytes, 12, "fmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, channels, true);
  view.setUint32(24, sampleRate, true);
  view.setUint32(28, sampleRate * channels * 2, true);
  view.setUint16(32, channels * 2, true);
  view.setUint16(34, 16, true);
  putTag(bytes, 36, "data");
  view.setUint32(40, dataBytes ?? unknownLength, true);
  return bytes;
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
  const file = new Uint8Array(headerBytes + length);
  file.set(wavHeader(first, length));
  let at = headerBytes;
  for (const { samples } of parts) {
    file.set(sampleBytes(samples), at);
    at += samples.length * 2;
  }
  return file;
}

/** Whole samples of silence: half of one would turn all that follows into noise. */
export function silence({ sampleRate, channels }: Omit<Pcm, "samples">, milliseconds: number): Pcm {
  return {
    sampleRate,
    channels,
    samples: new Int16Array(Math.round((sampleRate * milliseconds) / 1000) * channels),
  };
}

/**
 * Sound between -1 and 1 as samples, its loudest place at full scale, as Piper does with each sentence. What is all but
 * silent is not made loud.
 */
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

function readFormat(view: DataView, at: number, size: number): { sampleRate: number; channels: number } {
  if (size < 16) throw bad("its format is cut");
  const kind = view.getUint16(at, true);
  // The long form of the format has the kind once more, further on.
  const isPcm = kind === 1 || (kind === 0xfffe && size >= 26 && view.getUint16(at + 24, true) === 1);
  const channels = view.getUint16(at + 2, true);
  const sampleRate = view.getUint32(at + 4, true);
  const bits = view.getUint16(at + 14, true);
  if (!isPcm || bits !== 16) throw bad(`its sound is of kind ${kind} with ${bits} bits, not PCM with 16`);
  if (channels < 1 || channels > 8 || sampleRate < 1000 || sampleRate > 384_000) {
    throw bad(`${channels} channels at ${sampleRate} Hz are none`);
  }
  if (view.getUint16(at + 12, true) !== channels * 2) throw bad("its block size is wrong");
  return { sampleRate, channels };
}

function samplesOf(view: DataView, at: number, size: number): Int16Array {
  const samples = new Int16Array(size / 2);
  // Copied: in the file they may begin at an odd place.
  sampleBytes(samples).set(new Uint8Array(view.buffer, view.byteOffset + at, size));
  return samples;
}

function tag(bytes: Uint8Array, at: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + 4));
}

function putTag(bytes: Uint8Array, at: number, text: string): void {
  for (let i = 0; i < text.length; i++) bytes[at + i] = text.charCodeAt(i);
}

function bad(why: string): GatewayError {
  return new GatewayError("upstream_failed", `the speech engine's answer is no WAV file: ${why}`);
}
