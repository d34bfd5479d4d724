// The command line: runs the command and turns its outcome into an exit code.
import type { ErrorCode } from "../core/error-catalog.ts";
import { type GatewayError, toGatewayError } from "../core/errors.ts";
import { readSettings } from "../settings/settings.ts";
import { runCommand } from "./commands.ts";
import { jsonLines } from "./log-output.ts";
import { wrapped } from "./text.ts";

/** Messages of these codes contain the remedy. */
const clear: ReadonlySet<ErrorCode> = new Set(["invalid_request", "unauthorized", "engine_missing"]);

function printFailure({ message, hint, code }: GatewayError): void {
  const { argv, stderr } = process;
  const more = clear.has(code) ? {} : { hint };
  if (argv.includes("--json") || (argv.includes("serve") && !stderr.isTTY))
    return jsonLines(stderr).fatal({ code, ...more }, message);
  for (const text of [`model-gateway: ${message}`, ...Object.values(more)])
    console.error(wrapped(text, stderr.isTTY ? stderr.columns : undefined));
}

try {
  const code = await runCommand(readSettings(process.argv.slice(2)));
  if (code !== null) process.exitCode = code;
} catch (error) {
  printFailure(toGatewayError(error));
  process.exitCode = 1;
}
