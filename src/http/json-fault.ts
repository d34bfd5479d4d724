// Where a text stops being JSON, as line and column. Node's own parser says it in some of its messages only, and quotes
// from the body in others. Pure; run only on a text that did not parse.

export interface JsonFault {
  /** From 1; columns count UTF-16 units, as editors' protocols do. */
  readonly line: number;
  readonly column: number;
  /** What is there, in words: `unexpected "x"`, `the text ends`. */
  readonly what: string;
}

/** For a text that `JSON.parse` refuses; null where nothing is wrong with it. */
export function jsonFault(text: string): JsonFault | null {
  const at = faultAt(text);
  if (at === null) return null;
  const before = text.slice(0, at);
  const lineStart = before.lastIndexOf("\n") + 1;
  return {
    line: before.split("\n").length,
    column: at - lineStart + 1,
    what: whatIs(text, at),
  };
}

/** `line 3, column 14: unexpected "x"` */
export function faultText({ line, column, what }: JsonFault): string {
  return `line ${line}, column ${column}: ${what}`;
}

function whatIs(text: string, at: number): string {
  if (text.trim() === "") return "there is nothing but white space";
  const code = text.codePointAt(at);
  if (code === undefined) return "the text ends too early";
  if (code === 0x0a || code === 0x0d) return "a line break, which a string has as \\n";
  if (code < 0x20) return "a control character";
  return `unexpected ${JSON.stringify(String.fromCodePoint(code))}`;
}

const space = /[ \t\n\r]*/y;
const number = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const word = /true|false|null/y;
/** Up to what ends a run of plain characters in a string. */
// oxlint-disable-next-line no-control-regex -- JSON forbids just these in a string
const special = /["\\\u0000-\u001f]/g;
const escape = /\\(?:["\\/bfnrt]|u[\da-fA-F]{4})/y;

function matchEnd(pattern: RegExp, text: string, at: number): number | null {
  pattern.lastIndex = at;
  return pattern.test(text) ? pattern.lastIndex : null;
}

type End = { readonly end: number } | { readonly fault: number };

function stringEnd(text: string, open: number): End {
  for (let i = open + 1; ; ) {
    special.lastIndex = i;
    const at = special.exec(text)?.index;
    if (at === undefined) return { fault: text.length };
    if (text[at] === '"') return { end: at + 1 };
    const next = text[at] === "\\" ? matchEnd(escape, text, at) : null;
    if (next === null) return { fault: at };
    i = next;
  }
}

function scalarEnd(text: string, at: number): End {
  if (text[at] === '"') return stringEnd(text, at);
  const end = matchEnd(word, text, at) ?? matchEnd(number, text, at);
  return end === null ? { fault: at } : { end };
}

/** Offset of the first character that no JSON text has there; null for JSON. */
function faultAt(text: string): number | null {
  const closers: string[] = [];
  let expect: "value" | "first" | "key" | "next" = "value";
  let i = 0;
  for (;;) {
    i = matchEnd(space, text, i) ?? i;
    const char = text[i];
    const closer = closers.at(-1);
    if (expect === "next") {
      if (closer === undefined) return i < text.length ? i : null;
      if (char === closer) closers.pop();
      else if (char === ",") expect = closer === "}" ? "key" : "value";
      else return i;
      i++;
    } else if (expect === "first" && char === closer) {
      closers.pop();
      expect = "next";
      i++;
    } else if (expect === "key" || (expect === "first" && closer === "}")) {
      if (char !== '"') return i;
      const key = stringEnd(text, i);
      if ("fault" in key) return key.fault;
      i = matchEnd(space, text, key.end) ?? key.end;
      if (text[i] !== ":") return i;
      expect = "value";
      i++;
    } else if (char === "{" || char === "[") {
      closers.push(char === "{" ? "}" : "]");
      expect = "first";
      i++;
    } else {
      const scalar = scalarEnd(text, i);
      if ("fault" in scalar) return scalar.fault;
      i = scalar.end;
      expect = "next";
    }
  }
}
