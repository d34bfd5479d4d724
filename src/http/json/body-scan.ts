// Finds the top-level members of a JSON object in its raw bytes, without parsing the rest: a 20 MB body (an image in a
// message) would block the event loop for some 30 ms and double in memory if parsed. Pure.

/** The bytes [start, end) of a value, quotes and brackets included. */
export interface JsonSpan {
  readonly start: number;
  readonly end: number;
}

export interface BodyScan {
  readonly ok: true;
  /** The wanted keys that the object has; of duplicates the last, as JSON.parse and the engine take it. */
  readonly members: ReadonlyMap<string, JsonSpan>;
  /** Values, at any depth, that are strings of more than `longText` bytes, in order. */
  readonly longTexts: readonly JsonSpan[];
}

export interface ScanLimits {
  /** At any depth; a body of more is refused where they are too many. A list, an object and a key count as many, see below. */
  readonly mostValues?: number;
  /** Bytes; absent: none is noted. */
  readonly longText?: number;
  /** The body may be a list, too. */
  readonly list?: true;
}

export interface ScanFailure {
  readonly ok: false;
  /** The byte offset where the JSON breaks off or goes wrong. */
  readonly position: number;
  /** It is nested too deeply, or of too many values; what comes later was not looked at. */
  readonly isTooMuch?: true;
}

export type ScanResult = BodyScan | ScanFailure;

const [quote, backslash, comma, colon] = [0x22, 0x5c, 0x2c, 0x3a] as const;
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d] as const;

/** Deeper documents are refused: no request nests like this but to exhaust memory. */
const maxDepth = 1000;

/** Bytes of a string compared one by one before the native search; a call of it costs about as much. */
const shortString = 64;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const literals = ["true", "false", "null"].map((text) => encoder.encode(text));

/** Bytes; no key, name or number is longer. */
const longestRead = 1 << 16;

/** Bytes, and values, that are scanned without a pause: 2 ms. */
const pauseBytes = 1 << 20;
const pauseValues = 1 << 15;

/** Cost of parsing a list, an object or a key, in numbers. */
const structureCost = 8;

/** Digits beyond these change no number. */
const longestNumber = 4096;

/** Result of a step that failed at `position`, told apart from an offset by its sign. */
function failedAt(position: number): number {
  return -1 - position;
}

/** Result of a step that goes on at `position`; larger than any offset. */
const pausedAt = 2 ** 40;

function isSpace(byte: number | undefined): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** The value of a span; undefined where there is none, or no valid JSON in valid UTF-8. */
export function readValue(body: Uint8Array, span: JsonSpan | undefined): unknown {
  if (!span || span.end - span.start > longestRead) return undefined;
  try {
    return JSON.parse(decoder.decode(body.subarray(span.start, span.end)));
  } catch {
    return undefined;
  }
}

function skipSpace(body: Uint8Array, from: number): number {
  const until = from + pauseBytes;
  let i = from;
  while (i < until && isSpace(body[i])) i++;
  return i;
}

/**
 * Offset after the closing quote of a string, from an offset inside of it that is not in the middle of an escape. The inside
 * is not validated.
 */
function stringEnd(body: Uint8Array, from: number): number {
  const until = from + pauseBytes;
  let i = from;
  for (;;) {
    if (i >= until) return pausedAt + i;
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
  while (isDigit(body[i]) && i - from < longestNumber) i++;
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

/** Of a value that is neither a string nor a list or object. */
function scalarEnd(body: Uint8Array, from: number): number {
  const byte = body[from];
  if (byte === 0x2d || isDigit(byte)) return numberEnd(body, from);
  const literal = literals.find((bytes) => startsWith(body, bytes, from));
  return literal ? from + literal.length : failedAt(from);
}

/** The wanted key spelled by the string literal [start, end); undefined for another key, null for a malformed one. */
function matchKey(
  body: Uint8Array,
  start: number,
  end: number,
  wanted: readonly (readonly [string, Uint8Array])[],
): string | undefined | null {
  if (!body.subarray(start, end).includes(backslash)) {
    return wanted.find(([, bytes]) => bytes.length === end - start - 2 && startsWith(body, bytes, start + 1))?.[0];
  }
  const key = readValue(body, { start, end });
  return typeof key === "string" ? wanted.find(([name]) => name === key)?.[0] : null;
}

/**
 * Finds the top-level members named by `keys`. Everything is checked against the JSON grammar but for what is inside
 * strings (escapes, control characters, UTF-8), which cannot move a span; the readers check those.
 */
export function scanBody(body: Uint8Array, keys: readonly string[], limits: ScanLimits = {}): ScanResult {
  const steps = scanSteps(body, keys, limits);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}

/** The same in steps of some milliseconds, for a large body: others have the event loop in between. */
export function* scanSteps(
  body: Uint8Array,
  keys: readonly string[],
  { mostValues = Number.POSITIVE_INFINITY, longText = Number.POSITIVE_INFINITY, list }: ScanLimits,
): Generator<void, ScanResult, void> {
  const wanted = keys.map((key) => [key, encoder.encode(key)] as const);
  const members = new Map<string, JsonSpan>();
  const longTexts: JsonSpan[] = [];
  const bad = (end: number): ScanFailure => ({ ok: false, position: Math.min(-1 - end, body.length) });
  const closers: number[] = [];
  let expect = "value" as "value" | "first" | "key" | "colon" | "next";
  let cost = 0;
  let pauseAt = pauseValues;
  let member: { readonly key: string; start: number } | undefined;
  /** Where a string that was begun goes on; 0: none was. */
  let inString = 0;
  let i = 0;

  function valueEnded(end: number): void {
    expect = "next";
    if (member === undefined || closers.length > 1) return;
    members.set(member.key, { start: member.start, end });
    member = undefined;
  }

  for (;;) {
    i = skipSpace(body, i);
    const byte = body[i];
    const closer = closers.at(-1);
    if (isSpace(byte)) {
      yield;
    } else if (byte === closer && (expect === "next" || expect === "first")) {
      i++;
      closers.pop();
      if (closers.length === 0) break;
      valueEnded(i);
    } else if (expect === "first") {
      expect = closer === closeBrace ? "key" : "value";
    } else if (expect === "next") {
      if (byte !== comma) return bad(failedAt(i));
      expect = closer === closeBrace ? "key" : "value";
      i++;
    } else if (expect === "colon") {
      if (byte !== colon) return bad(failedAt(i));
      expect = "value";
      i++;
    } else if (byte === quote && closers.length > 0) {
      const end = stringEnd(body, inString || i + 1);
      inString = Math.max(0, end - pausedAt);
      if (end < 0) return bad(end);
      if (inString > 0) {
        yield;
        continue;
      }
      if (expect === "key") {
        const key = closers.length === 1 ? matchKey(body, i, end, wanted) : undefined;
        if (key === null) return bad(failedAt(i));
        if (closers.length === 1) member = key === undefined ? undefined : { key, start: 0 };
        cost += structureCost;
        expect = "colon";
      } else {
        cost++;
        if (end - i > longText) longTexts.push({ start: i, end });
        if (member && closers.length === 1) member.start = i;
        valueEnded(end);
      }
      i = end;
    } else if (expect === "key" || (closers.length === 0 && byte !== openBrace && !(list && byte === openBracket))) {
      return bad(failedAt(i));
    } else {
      if (member && closers.length === 1) member.start = i;
      if (byte === openBrace || byte === openBracket) {
        cost += structureCost;
        if (closers.length >= maxDepth) return { ...bad(failedAt(i)), isTooMuch: true };
        closers.push(byte === openBrace ? closeBrace : closeBracket);
        expect = "first";
        i++;
      } else {
        cost++;
        i = scalarEnd(body, i);
        if (i < 0) return bad(i);
        valueEnded(i);
      }
    }
    if (cost > mostValues) return { ...bad(failedAt(i)), isTooMuch: true };
    if (cost >= pauseAt) {
      pauseAt = cost + pauseValues;
      yield;
    }
  }
  while (isSpace(body[i])) {
    i = skipSpace(body, i);
    yield;
  }
  return i === body.length ? { ok: true, members, longTexts } : bad(failedAt(i));
}
