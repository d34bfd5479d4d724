// The dynamic loader that an ELF executable names, which is an absolute path. Pure: bytes in, bytes out.

/** PT_INTERP */
const interpreterType = 3;

/**
 * The executable with another loader; null where it names none, or is not of 64 bits and little-endian. The path goes to the end of
 * the file: the kernel reads it from there, however long it is, and everything else stays in its place.
 */
export function withInterpreter(executable: Buffer, interpreter: string): Buffer | null {
  const ident = executable.toString("latin1", 0, 6);
  if (ident !== "\u007fELF\u0002\u0001") return null;
  const headers = Number(executable.readBigUInt64LE(32));
  const size = executable.readUInt16LE(54);
  const count = executable.readUInt16LE(56);
  const all = Array.from({ length: count }, (_, index) => headers + index * size);
  const header = all.find((at) => executable.readUInt32LE(at) === interpreterType);
  if (header === undefined) return null;
  const text = Buffer.from(`${interpreter}\0`);
  const changed = Buffer.concat([executable, text]);
  changed.writeBigUInt64LE(BigInt(executable.length), header + 8);
  changed.writeBigUInt64LE(BigInt(text.length), header + 32);
  return changed;
}
