// A request's body as a JSON value, with the place where it is none. Must not let one body hold up all others: what is large
// is looked through in steps before it is parsed.
import { setImmediate } from "node:timers/promises";
import { GatewayError } from "../../core/errors.ts";
import { type ScanLimits, type ScanResult, scanBody, scanSteps } from "../json/body-scan.ts";
import { jsonFault } from "../json/json-fault.ts";

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
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    // The parser's own message quotes from the body.
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
