// The command line: runs the command and turns its outcome into an exit code.
import type { ErrorCode } from "../core/error-catalog.ts";
import { type GatewayError, toGatewayError } from "../core/errors.ts";
import { readSettings, type Settings } from "../settings/settings.ts";
import { runCommand } from "./commands.ts";
import { isForPrograms } from "./log-format.ts";
import { wrapped } from "./text.ts";

/** Messages of these codes contain the remedy. */
const clear: ReadonlySet<ErrorCode> = new Set(["invalid_request", "unauthorized", "engine_missing"]);

/** In place of the hint for programs, which names routes. */
const modelHint = "`models` lists what is here, and `search TEXT` what the hub has.";

async function printFailure({ message, hint, code }: GatewayError, isJson: boolean): Promise<void> {
  const { stderr } = process;
  const more = clear.has(code) ? {} : { hint: code === "model_not_found" ? modelHint : hint };
  if (isJson) return (await import("./log-output.ts")).jsonLines(stderr).fatal({ code, ...more }, message);
  for (const text of [`model-gateway: ${message}`, ...Object.values(more)])
    console.error(wrapped(text, stderr.isTTY ? stderr.columns : undefined));
}

/** Resolves with the exit code; with null for `serve`, which listens then. */
export async function main(...[args, environment]: Parameters<typeof readSettings>): Promise<number | null> {
  let format: Settings["logFormat"] = "auto";
  try {
    const line = readSettings(args, environment);
    format = line.settings.logFormat;
    return await runCommand(line);
  } catch (error) {
    const isServed = args.includes("serve") && isForPrograms(format, process.stderr);
    await printFailure(toGatewayError(error), isServed || args.includes("--json"));
    return 1;
  }
}
