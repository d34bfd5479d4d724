// Files of sound whose headers say what a test needs.
import { someSound } from "./whisper.ts";

/** WAV of a form that the engine fails over: `tag` 2 and 17 are ADPCM, and the sound is none. */
export function wavSaying({ tag }: { readonly tag: number }): Buffer {
  const sound = someSound();
  sound.writeUInt16LE(tag, 20);
  return sound;
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
