// gateway.yaml's bytes as text. Decoding other encodings as UTF-8 puts U+FFFD into ids and paths, silently.
import { noneAllowed, type PresetAllow } from "../../core/preset-keys.ts";
import { type Parsed, parseSource, type SourceProblem } from "./parse.ts";

/** As {@link parseSource}; bytes that are no UTF-8 are a problem that names their encoding. */
export function parseBytes(bytes: Buffer, presetAllow: PresetAllow = noneAllowed): Parsed {
  const problem = encodingProblem(bytes);
  return problem ? { ok: false, problems: [problem], more: 0 } : parseSource(bytes.toString("utf8"), presetAllow);
}

function encodingProblem(bytes: Buffer): SourceProblem | null {
  const wide = wideEncoding(bytes);
  if (wide !== null) return { line: 1, column: 1, path: "", message: `the file is ${wide}: save it as UTF-8` };
  // What was no UTF-8 comes back as U+FFFD.
  const back = Buffer.from(bytes.toString("utf8"));
  if (back.equals(bytes)) return null;
  const at = bytes.findIndex((byte, index) => byte !== back[index]);
  const before = bytes.toString("utf8", 0, at).split("\n");
  const byte = (bytes[at] ?? 0).toString(16).toUpperCase();
  const message = `byte 0x${byte} is not UTF-8, but of another encoding such as Latin-1 or Windows-1252: save the file as UTF-8`;
  return { line: before.length, column: (before.at(-1)?.length ?? 0) + 1, path: "", message };
}

/** By its mark, or by the zero bytes of the plain letters that a document begins with. */
function wideEncoding(bytes: Buffer): string | null {
  const start = bytes.toString("latin1", 0, 8);
  if (start.startsWith("\u00ff\u00fe\0\0") || start.startsWith("\0\0\u00fe\u00ff")) return "UTF-32";
  if (start.startsWith("\u00ff\u00fe") || /^(?:[^\0]\0){4}$/.test(start)) return "UTF-16 (little endian)";
  if (start.startsWith("\u00fe\u00ff") || /^(?:\0[^\0]){4}$/.test(start)) return "UTF-16 (big endian)";
  return null;
}
