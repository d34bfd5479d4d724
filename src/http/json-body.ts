// A request's body as a JSON value, with the place where it is none. Must not let one body hold up all others: what is large
// is looked through before it is parsed.
import { GatewayError } from "../core/errors.ts";
import { scanBody } from "./body-scan.ts";
import { faultText, jsonFault } from "./json-fault.ts";

/** Bytes up to which a body is parsed whatever is in it: 100 ms at the worst. */
const small = 1 << 20;

/**
 * Values in a larger body. Parsing 20 million empty lists, 60 MB, took 8 s and 1 GB; an image is one value, and the longest
 * lists that clients send are of a context's tokens.
 */
const mostValues = 500_000;

/** An empty body is undefined. Errors: `invalid_request` with the place where the text goes wrong. */
export function parseJsonBody(bytes: Buffer | undefined): unknown {
  const body = withoutMark(bytes ?? Buffer.alloc(0));
  if (body.length === 0) return undefined;
  if (body.length > small) {
    const scan = scanBody(body, [], { mostValues });
    if (!scan.ok) throw notJson(body, scan.position);
  }
  try {
    return JSON.parse(body.toString("utf8")) as unknown;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    // The parser's own message quotes from the body.
    throw notJson(body);
  }
}

/** Windows shells put a byte order mark before what they send. */
export function withoutMark(body: Buffer): Buffer {
  return body[0] === 0xef && body[1] === 0xbb && body[2] === 0xbf ? body.subarray(3) : body;
}

/** What is wrong with a body that did not parse, or that a scan stopped in at byte `position`. */
export function notJson(body: Uint8Array, position?: number): GatewayError {
  const fault = jsonFault(body);
  if (fault) return new GatewayError("invalid_request", `the body is no JSON: ${faultText(fault)}`);
  return new GatewayError(
    "invalid_request",
    position === undefined
      ? "the body is no JSON"
      : `the body is no JSON object, nested too deeply, or of too many values (at byte ${position})`,
  );
}
