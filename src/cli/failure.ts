// Why a command ended: as text, or as a JSON line where a program reads it.
import type { ErrorCode } from "../core/error-catalog.ts";
import type { GatewayError } from "../core/errors.ts";
import { jsonLines } from "./log-output.ts";
import { wrapped } from "./wrap.ts";

/** Messages of these codes contain the remedy. */
const clear: ReadonlySet<ErrorCode> = new Set(["invalid_request", "unauthorized", "engine_missing"]);

export function tellFailure({ message, hint, code }: GatewayError, asJson: boolean): void {
  const { stderr } = process;
  const more = clear.has(code) ? {} : { hint };
  if (asJson) return jsonLines(stderr).fatal({ code, ...more }, message);
  for (const text of [`model-gateway: ${message}`, ...Object.values(more)])
    console.error(wrapped(text, stderr.isTTY ? stderr.columns : undefined));
}
