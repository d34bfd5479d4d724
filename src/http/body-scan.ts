// Finds the top-level members of a JSON object in its raw bytes, without parsing the rest: a 20 MB body (an image in a
// message) would block the event loop for some 30 ms and double in memory if parsed. Changing them is body-edit.ts's.
// Pure; it knows nothing of what the members mean.

export type JsonKind = "string" | "number" | "boolean" | "null" | "object" | "array";

/** The bytes [start, end) of a value, quotes and brackets included. */
export interface JsonSpan {
  readonly start: number;
  readonly end: number;
  readonly kind: JsonKind;
}

/** The bytes [start, end) of a member, from its key's opening quote to the end of its value. */
export interface MemberSpan {
  readonly key: string;
  readonly start: number;
  readonly end: number;
}

export interface BodyScan {
  readonly ok: true;
  /** The wanted keys that the object has; of duplicates the last, as JSON.parse and the engine take it. */
  readonly members: ReadonlyMap<string, JsonSpan>;
  /** Every occurrence of a wanted key, in order. */
  readonly occurrences: readonly MemberSpan[];
  /** Offset of the object's opening brace. */
  readonly open: number;
  /** Offset of the object's closing brace. */
  readonly close: number;
}

export interface ScanLimits {
  /** At any depth, lists and objects counted too; a body of more is refused where they are too many. */
  readonly mostValues?: number;
}

/** `position`: the byte offset where the JSON breaks off or goes wrong. */
export type ScanResult = BodyScan | { readonly ok: false; readonly position: number };

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a] as const;
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d] as const;

/** Deeper documents are refused: no request nests like this but to exhaust memory. */
const maxDepth = 1000;

/** Bytes of a string looked at one by one before the native search takes over; a call of it costs about as much. */
const shortString = 64;

/** The kind of a value by its first byte; every other one begins a number. */
const kinds = new Map<number, JsonKind>([
  [quote, "string"],
  [openBrace, "object"],
  [openBracket, "array"],
  [0x74, "boolean"],
  [0x66, "boolean"],
  [0x6e, "null"],
]);

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const literals = ["true", "false", "null"].map((text) => encoder.encode(text));

/** Result of a step that failed at `position`, told apart from an offset by its sign. */
function failedAt(position: number): number {
  return -1 - position;
}

export function skipSpace(body: Uint8Array, from: number): number {
  let i = from;
  for (;;) {
    const byte = body[i];
    if (byte !== 0x20 && byte !== 0x0a && byte !== 0x0d && byte !== 0x09) return i;
    i++;
  }
}

/** Offset after the closing quote of the string whose opening quote is at `open`. The inside is not validated. */
function stringEnd(body: Uint8Array, open: number): number {
  let i = open + 1;
  for (;;) {
    const nearEnd = Math.min(i + shortString, body.length);
    while (i < nearEnd) {
      const byte = body[i];
      if (byte === quote) return i + 1;
      i += byte === backslash ? 2 : 1;
    }
    if (i >= body.length) return failedAt(body.length);
    const close = body.indexOf(quote, i);
    if (close < 0) return failedAt(body.length);
    // `i` is never inside an escape, so an odd run of backslashes back to it means that the quote is escaped.
    let run = close;
    while (run > i && body[run - 1] === backslash) run--;
    if ((close - run) % 2 === 0) return close + 1;
    i = close + 1;
  }
}

function isDigit(byte: number | undefined): boolean {
  return byte !== undefined && byte >= 0x30 && byte <= 0x39;
}

function digitsEnd(body: Uint8Array, from: number): number {
  let i = from;
  while (isDigit(body[i])) i++;
  return i === from ? failedAt(from) : i;
}

function numberEnd(body: Uint8Array, from: number): number {
  let i = body[from] === 0x2d ? from + 1 : from;
  i = body[i] === 0x30 ? i + 1 : digitsEnd(body, i);
  if (i >= 0 && body[i] === 0x2e) i = digitsEnd(body, i + 1);
  if (i >= 0 && (body[i] === 0x65 || body[i] === 0x45)) {
    const sign = body[i + 1];
    i = digitsEnd(body, i + (sign === 0x2b || sign === 0x2d ? 2 : 1));
  }
  return i;
}

function startsWith(body: Uint8Array, bytes: Uint8Array, from: number): boolean {
  for (let i = 0; i < bytes.length; i++) if (body[from + i] !== bytes[i]) return false;
  return true;
}

/** Offset after the colon of the key that begins at `from`. */
function keyEnd(body: Uint8Array, from: number): number {
  if (body[from] !== quote) return failedAt(from);
  const end = stringEnd(body, from);
  if (end < 0) return end;
  const at = skipSpace(body, end);
  return body[at] === colon ? at + 1 : failedAt(at);
}

function scalarEnd(body: Uint8Array, from: number): number {
  const byte = body[from];
  if (byte === quote) return stringEnd(body, from);
  if (byte === 0x2d || isDigit(byte)) return numberEnd(body, from);
  const literal = literals.find((bytes) => startsWith(body, bytes, from));
  return literal ? from + literal.length : failedAt(from);
}

/** The wanted key spelled by the string literal at `start`; undefined for another key, null for a malformed one. */
function matchKey(
  body: Uint8Array,
  start: number,
  wanted: readonly (readonly [string, Uint8Array])[],
): string | undefined | null {
  const end = stringEnd(body, start);
  if (!body.subarray(start, end).includes(backslash)) {
    return wanted.find(([, bytes]) => bytes.length === end - start - 2 && startsWith(body, bytes, start + 1))?.[0];
  }
  const key = parseText(body, start, end);
  return typeof key === "string" ? wanted.find(([name]) => name === key)?.[0] : null;
}

function parseText(body: Uint8Array, start: number, end: number): unknown {
  try {
    return JSON.parse(decoder.decode(body.subarray(start, end)));
  } catch {
    // Invalid UTF-8, or an escape or control character that JSON forbids: no value.
    return undefined;
  }
}

/**
 * Finds the top-level members named by `keys`. Everything is checked against the JSON grammar but for what is inside
 * strings (escapes, control characters, UTF-8), which cannot move a span; the readers check those.
 */
export function scanBody(
  body: Uint8Array,
  keys: readonly string[],
  { mostValues = Number.POSITIVE_INFINITY }: ScanLimits = {},
): ScanResult {
  const wanted = keys.map((key) => [key, encoder.encode(key)] as const);
  const members = new Map<string, JsonSpan>();
  const occurrences: MemberSpan[] = [];
  const bad = (end: number): ScanResult => ({ ok: false, position: Math.min(-1 - end, body.length) });
  const closers: number[] = [];
  let expect: "value" | "key" | "next" = "value";
  let values = 0;
  let member: { readonly key: string; readonly at: number; readonly start: number } | undefined;

  function valueEnded(end: number): void {
    expect = "next";
    if (member === undefined || closers.length > 1) return;
    members.set(member.key, { start: member.start, end, kind: kinds.get(body[member.start] ?? 0) ?? "number" });
    occurrences.push({ key: member.key, start: member.at, end });
    member = undefined;
  }

  let i = skipSpace(body, 0);
  const open = i;
  if (body[i] !== openBrace) return bad(failedAt(i));
  for (;;) {
    i = skipSpace(body, i);
    const byte = body[i];
    if (expect === "next") {
      const closer = closers.at(-1);
      if (byte === comma) expect = closer === closeBrace ? "key" : "value";
      else if (byte !== closer) return bad(failedAt(i));
      else if (closers.length === 1) break;
      i++;
      if (byte === comma) continue;
      closers.pop();
      valueEnded(i);
    } else if (expect === "key") {
      const end = keyEnd(body, i);
      if (end < 0) return bad(end);
      const start = skipSpace(body, end);
      if (closers.length === 1) {
        const key = matchKey(body, i, wanted);
        if (key === null) return bad(failedAt(i));
        member = key === undefined ? undefined : { key, at: i, start };
      }
      i = start;
      expect = "value";
    } else if (++values > mostValues) {
      return bad(failedAt(i));
    } else if (byte === openBrace || byte === openBracket) {
      if (closers.length >= maxDepth) return bad(failedAt(i));
      const closer = byte === openBrace ? closeBrace : closeBracket;
      closers.push(closer);
      i = skipSpace(body, i + 1);
      if (body[i] === closer) expect = "next";
      else if (byte === openBrace) expect = "key";
    } else {
      i = scalarEnd(body, i);
      if (i < 0) return bad(i);
      valueEnded(i);
    }
  }
  const after = skipSpace(body, i + 1);
  return after === body.length ? { ok: true, members, occurrences, open, close: i } : bad(failedAt(after));
}

/** The string at `span`; undefined where there is none, or it is no valid JSON string in valid UTF-8. */
export function readString(body: Uint8Array, span: JsonSpan | undefined): string | undefined {
  if (span?.kind !== "string") return undefined;
  const value = parseText(body, span.start, span.end);
  return typeof value === "string" ? value : undefined;
}

export function readBoolean(body: Uint8Array, span: JsonSpan | undefined): boolean | undefined {
  return span?.kind === "boolean" ? body[span.start] === 0x74 : undefined;
}

/** A string, number, boolean or null; undefined where there is none, or something else. */
export function readScalar(body: Uint8Array, span: JsonSpan | undefined): string | number | boolean | null | undefined {
  if (!span || span.kind === "object" || span.kind === "array") return undefined;
  return parseText(body, span.start, span.end) as string | number | boolean | null | undefined;
}
