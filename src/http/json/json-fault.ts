// Where a text stops being JSON, as line and column. Node's own parser says it in some of its messages only, and quotes
// from the body in others. Pure; run only on a text that did not parse, and cheap also where somebody sends such on purpose.

export interface JsonFault {
  /** From 1; columns count UTF-16 units, as editors' protocols do. */
  readonly line: number;
  readonly column: number;
  /** What is there, in words: `unexpected "x"`, `the text ends`. */
  readonly what: string;
}

/** Units of a text, or bytes of a body, that are looked through: nobody counts lines beyond, but looking blocks all others. */
const searched = 1 << 18;

/** No word, escape or surrogate pair is longer: a fault this near to where the search was cut off may be the cut's own. */
const blurred = 16;

const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/** For what `JSON.parse` refuses; null where nothing is wrong with it, or only beyond what is searched. */
export function jsonFault(source: string | Uint8Array): JsonFault | null {
  const text = typeof source === "string" ? source.slice(0, searched) : decoder.decode(source.subarray(0, searched));
  const at = faultAt(text);
  if (at === null || (source.length > searched && at > text.length - blurred)) return null;
  let line = 1;
  let lineStart = 0;
  for (let end = text.indexOf("\n"); end >= 0 && end < at; end = text.indexOf("\n", lineStart)) {
    line++;
    lineStart = end + 1;
  }
  return { line, column: at - lineStart + 1, what: whatIs(text, at) };
}

/** `line 3, column 14: unexpected "x"` */
export function faultText({ line, column, what }: JsonFault): string {
  return `line ${line}, column ${column}: ${what}`;
}

function whatIs(text: string, at: number): string {
  const code = text.codePointAt(at);
  if (code === undefined) return text.trim() === "" ? "there is nothing but white space" : "the text ends too early";
  if (code === 0x0a || code === 0x0d) return "a line break, which a string has as \\n";
  if (code < 0x20) return "a control character";
  return `unexpected ${JSON.stringify(String.fromCodePoint(code))}`;
}

const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const word = /true|false|null/y;
/** Up to what ends a run of plain characters in a string. */
// oxlint-disable-next-line no-control-regex -- JSON forbids just these in a string
const special = /["\\\u0000-\u001f]/g;
const escape = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;

const [quote, comma, colon] = [0x22, 0x2c, 0x3a] as const;
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d] as const;

function matchEnd(pattern: RegExp, text: string, at: number): number | null {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : null;
}

function spaceEnd(text: string, at: number): number {
  let i = at;
  for (;;) {
    const code = text.charCodeAt(i);
    if (code !== 0x20 && code !== 0x0a && code !== 0x0d && code !== 0x09) return i;
    i++;
  }
}

/** An offset, or `-1 - offset` of a fault: without an object for each of a million tokens. */
type End = number;

function faultIn(at: number): End {
  return -1 - at;
}

function stringEnd(text: string, open: number): End {
  for (let i = open + 1; ; ) {
    special.lastIndex = i;
    if (!special.test(text)) return faultIn(text.length);
    const at = special.lastIndex - 1;
    if (text.charCodeAt(at) === quote) return at + 1;
    const next = text[at] === "\\" ? matchEnd(escape, text, at) : null;
    if (next === null) return faultIn(at);
    i = next;
  }
}

function scalarEnd(text: string, at: number): End {
  const code = text.charCodeAt(at);
  if (code === quote) return stringEnd(text, at);
  const isNumber = code === 0x2d || (code >= 0x30 && code <= 0x39);
  return matchEnd(isNumber ? number : word, text, at) ?? faultIn(at);
}

/** Offset of the first character that no JSON text has there; null for JSON. */
function faultAt(text: string): number | null {
  // A byte for each level: a list of a million texts is what such a body is sent for.
  const closers = new Uint8Array(text.length);
  let depth = 0;
  let expect: "value" | "first" | "key" | "next" = "value";
  let i = 0;
  for (;;) {
    i = spaceEnd(text, i);
    const code = text.charCodeAt(i);
    const closer = depth === 0 ? undefined : closers[depth - 1];
    if (expect === "next") {
      if (closer === undefined) return i < text.length ? i : null;
      if (code === closer) depth--;
      else if (code === comma) expect = closer === closeBrace ? "key" : "value";
      else return i;
      i++;
    } else if (expect === "first" && code === closer) {
      depth--;
      expect = "next";
      i++;
    } else if (expect === "key" || (expect === "first" && closer === closeBrace)) {
      if (code !== quote) return i;
      const key = stringEnd(text, i);
      if (key < 0) return -1 - key;
      i = spaceEnd(text, key);
      if (text.charCodeAt(i) !== colon) return i;
      expect = "value";
      i++;
    } else if (code === openBrace || code === openBracket) {
      closers[depth++] = code === openBrace ? closeBrace : closeBracket;
      expect = "first";
      i++;
    } else {
      const scalar = scalarEnd(text, i);
      if (scalar < 0) return -1 - scalar;
      i = scalar;
      expect = "next";
    }
  }
}
