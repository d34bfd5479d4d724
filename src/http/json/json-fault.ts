// Where a body stops being a JSON object or list, as line and column. Node's own parser states the place in some of its messages
// only, and quotes from the body in others. Pure; run only on a body that did not parse.
import { scanBody } from "./body-scan.ts";

/** Bytes that are searched: no person counts lines beyond, and the search blocks all other requests. */
const searched = 1 << 16;

/** No word, escape or surrogate pair is longer: a fault this near to where the search was cut off may be the cut's own. */
const blurred = 16;

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** A string up to its end, or up to what JSON forbids in it. */
// oxlint-disable-next-line no-control-regex -- JSON forbids just these in a string
const stringPattern = /"(?:[^"\\\u0000-\u001f]+|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*("?)/g;

/** `line 3, column 14: unexpected "x"`, columns in UTF-16 units as editors count; null: none was found in what is searched. */
export function jsonFault(body: Uint8Array): string | null {
  const head = body.subarray(0, searched);
  const scan = scanBody(head, [], { list: true });
  if (!scan.ok && scan.isTooMuch) return null;
  const text = decoder.decode(head);
  const sound = scan.ok ? text : decoder.decode(head.subarray(0, scan.position));
  const at = stringFault(sound) ?? (scan.ok ? null : sound.length);
  if (at === null || (body.length > searched && at > text.length - blurred)) return null;
  const before = text.slice(0, at).split("\n");
  return `line ${before.length}, column ${(before.at(-1) ?? "").length + 1}: ${whatIs(text, at)}`;
}

/** The scan checks everything but the inside of strings. */
function stringFault(text: string): number | null {
  for (const { 0: string, 1: close, index } of text.matchAll(stringPattern))
    if (close === "") return index + string.length;
  return null;
}

function whatIs(text: string, at: number): string {
  const code = text.codePointAt(at);
  if (code === undefined) return text.trim() === "" ? "there is nothing but white space" : "the text ends too early";
  if (code === 0x0a || code === 0x0d) return "a line break, which a string has as \\n";
  if (code < 0x20) return "a control character";
  return `unexpected ${JSON.stringify(String.fromCodePoint(code))}`;
}
