// A request's body as a JSON value, with the place where it is none: Node's own parser states the place in some of its messages only,
// and quotes from the body in others. One body must not hold up all others: a large one is looked through in steps before it is parsed.
import { setImmediate } from "node:timers/promises";
import { GatewayError } from "../../core/errors.ts";
import { type ScanLimits, type ScanResult, scanBody, scanSteps } from "../json/body-scan.ts";

/** Bytes up to which a body is parsed as it is; all but those of chats are this small. */
export const smallBody = 256 * 1024;
/** Bytes that are parsed within 10 ms whatever is in them; 256 KiB of lists in lists took 90 ms. */
const harmless = 16 * 1024;
/** Values of what is parsed, see {@link ScanLimits}: the tokens of the longest contexts. 25 ms at the worst. */
export const mostValues = 300_000;

/** Of a body of up to {@link smallBody}. An empty one is undefined. Errors: `invalid_request` with the place where the text goes wrong. */
export function parseJsonBody(bytes: Buffer | undefined): unknown {
  const body = withoutMark(bytes ?? Buffer.alloc(0));
  if (body.length === 0) return undefined;
  if (body.length > harmless) {
    const scan = scanBody(body, [], { mostValues });
    if (!scan.ok) throw notJson(body, scan.position);
  }
  try {
    return JSON.parse(body.toString("utf8")) as unknown;
  } catch {
    throw notJson(body);
  }
}

/** Others have the event loop in between: 60 MB of empty lists took 200 ms. */
export async function scanInTurns(body: Uint8Array, keys: readonly string[], limits: ScanLimits): Promise<ScanResult> {
  const steps = scanSteps(body, keys, limits);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
    await setImmediate();
  }
}

/** Windows shells put a byte order mark before what they send. */
export function withoutMark(body: Buffer): Buffer {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body;
}

/** What is wrong with a body that did not parse, or that a scan stopped in at byte `position`. */
export function notJson(body: Uint8Array, position?: number): GatewayError {
  const fault = jsonFault(body);
  if (fault) return new GatewayError("invalid_request", `the body is no JSON: ${fault}`);
  return new GatewayError(
    "invalid_request",
    position === undefined
      ? "the body is no JSON"
      : `the body is no JSON object, nested too deeply, or of too many values (at byte ${position})`,
  );
}

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
