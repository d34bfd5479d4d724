// Reads single values of a JSON text in its raw bytes, where body-scan.ts found them. Pure.

export type JsonKind = "string" | "number" | "boolean" | "null" | "object" | "array";

/** The bytes [start, end) of a value, quotes and brackets included. */
export interface JsonSpan {
  readonly start: number;
  readonly end: number;
  readonly kind: JsonKind;
}

const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** No key, name or number is longer. */
const longestRead = 1 << 16;

export function parseText(body: Uint8Array, start: number, end: number): unknown {
  if (end - start > longestRead) return undefined;
  try {
    return JSON.parse(decoder.decode(body.subarray(start, end)));
  } catch {
    // Invalid UTF-8, or an escape or control character that JSON forbids: no value.
    return undefined;
  }
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
