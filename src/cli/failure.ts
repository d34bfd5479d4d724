// Why a command ended: as text, or as one more JSON line where a program reads the output of `serve`.
import type { ErrorCode } from "../core/error-catalog.ts";
import type { GatewayError } from "../core/errors.ts";
import { jsonLines } from "./log-output.ts";
import { wrapped } from "./wrap.ts";

/** Messages of these codes contain the remedy. */
const clear: ReadonlySet<ErrorCode> = new Set(["invalid_request", "unauthorized", "engine_missing"]);

export function tellFailure({ message, hint, code }: GatewayError, ofServe: boolean): void {
  const { stderr } = process;
  const more = clear.has(code) ? {} : { hint };
  if (ofServe && !stderr.isTTY) return jsonLines(stderr).fatal({ code, ...more }, message);
  for (const text of [`model-gateway: ${message}`, ...Object.values(more)])
    console.error(wrapped(text, stderr.isTTY ? stderr.columns : undefined));
}
