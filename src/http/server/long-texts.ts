// Parses a large body without its long texts: decoding, parsing and encoding an image of 40 MB blocked the event loop for 250 ms.
// The parsed value has the first characters of each long text, which show its kind, and a mark. The encoder puts the bytes back.
import { randomBytes } from "node:crypto";
import { setImmediate } from "node:timers/promises";
import { GatewayError } from "../../core/errors.ts";
import { mostValues, notJson, parseJsonBody, scanInTurns, smallBody, withoutMark } from "./json-body.ts";

/** Bytes from which a text counts as long, and of its beginning that is parsed. */
const longText = 4096;
const headBytes = 64;
/** Bytes of the rest, which is parsed: 15 ms. */
const mostBytes = 8 << 20;

interface LongTexts {
  readonly body: Buffer;
  /** Where the texts continue after their parsed beginnings. */
  readonly tails: readonly (readonly [start: number, end: number])[];
  /** Part of each mark. A client that guessed it could multiply a text. */
  readonly secret: string;
}

const textsOf = new WeakMap<object, LongTexts>();

/** As {@link parseJsonBody}; a large body has to be an object. Errors: `invalid_request`, `body_too_large`. */
export async function parseAnyBody(bytes: Buffer): Promise<unknown> {
  if (bytes.length <= smallBody) return parseJsonBody(bytes);
  const body = withoutMark(bytes);
  const scan = await scanInTurns(body, [], { mostValues, longText });
  if (!scan.ok) throw notJson(body, scan.position);
  const secret = randomBytes(8).toString("hex");
  const tails: [number, number][] = [];
  const parts: Buffer[] = [];
  let length = 0;
  let at = 0;
  const take = (part: Buffer): void => void (length += parts[parts.push(part) - 1]?.length ?? 0);
  for (const { start, end } of scan.longTexts) {
    const tail = headEnd(body, start + 1);
    take(body.subarray(at, tail));
    take(Buffer.from(`\\u0001${secret}.${tails.length};`));
    tails.push([tail, end - 1]);
    at = end - 1;
  }
  take(body.subarray(at));
  if (length > mostBytes)
    throw new GatewayError("body_too_large", `the body has more than ${mostBytes} bytes beside its long texts`);
  const text = Buffer.concat(parts).toString("utf8");
  await setImmediate();
  let value: object;
  try {
    value = JSON.parse(text) as object;
  } catch {
    throw notJson(body);
  }
  textsOf.set(value, { body, tails, secret });
  await setImmediate();
  return value;
}

/** A value as JSON, in pieces, with the long texts of `source`, the parsed body that it was made from. */
export function encodeJson(value: object, source: unknown): readonly Uint8Array[] {
  const json = JSON.stringify(value);
  const texts = textsOf.get(source as object);
  if (!texts) return [Buffer.from(json)];
  const parts: Buffer[] = [];
  let at = 0;
  for (const match of json.matchAll(new RegExp(`(\\\\+)u0001${texts.secret}\\.(\\d+);`, "g"))) {
    const [mark, backslashes = "", index] = match;
    const [start, end] = texts.tails[Number(index)] ?? [0, 0];
    parts.push(Buffer.from(json.slice(at, match.index)), escaped(texts.body.subarray(start, end), backslashes.length));
    at = match.index + mark.length;
  }
  return [...parts, Buffer.from(json.slice(at))];
}

/** Size of the large body that `source` was parsed from; 0: it was small. */
export function largeBytes(source: unknown): number {
  return textsOf.get(source as object)?.body.length ?? 0;
}

/** End of the plain characters at the beginning of a text. */
function headEnd(body: Buffer, from: number): number {
  let i = from;
  for (let byte = body[i]; i - from < headBytes; byte = body[++i])
    if (byte === undefined || byte < 0x20 || byte > 0x7e || byte === 0x22 || byte === 0x5c) break;
  return i;
}

/** `backslashes`: of its mark; two or more where the text is in JSON that is itself a JSON string. */
function escaped(text: Buffer, backslashes: number): Buffer {
  if (backslashes < 2) return text;
  const once = Buffer.from(text.toString("latin1").replaceAll(/[\\"]/g, "\\$&"), "latin1");
  return escaped(once, backslashes / 2);
}
