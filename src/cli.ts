#!/usr/bin/env node
// The command line: picks the command, turns its outcome into an exit code. Does no work itself.
import { planCommand, statusCommand } from "./cli/ask.ts";
import { engineCommand } from "./cli/engine.ts";
import { helpText } from "./cli/help.ts";
import { keyCommand } from "./cli/key.ts";
import { serveCommand } from "./cli/serve.ts";
import { validateCommand } from "./cli/validate.ts";
import { GatewayError, toGatewayError } from "./core/errors.ts";
import { type CommandLine, readSettings, version } from "./settings.ts";

/** Resolves with the exit code; `serve` resolves when it listens and goes on. */
async function run(line: CommandLine): Promise<number | null> {
  if (line.help || line.command === "help") {
    console.log(helpText());
    return 0;
  }
  if (line.expires !== undefined && line.command !== "key")
    throw new GatewayError("invalid_request", "--expires belongs to `model-gateway key create NAME`");
  switch (line.command) {
    case "serve":
      await serveCommand(line.settings);
      return null;
    case "plan":
      return planCommand(line);
    case "status":
      return statusCommand(line);
    case "validate":
      return validateCommand(line.operands);
    case "engine":
      return engineCommand(line);
    case "key":
      return keyCommand(line);
    case "version":
      console.log(version);
      return 0;
    default:
      throw new GatewayError(
        "invalid_request",
        `there is no command ${line.command}; \`model-gateway help\` lists them`,
      );
  }
}

try {
  const code = await run(readSettings(process.argv.slice(2)));
  if (code !== null) process.exitCode = code;
} catch (error) {
  const { message, hint, code } = toGatewayError(error);
  console.error(`model-gateway: ${message}`);
  // Both say what to do already.
  if (code !== "invalid_request" && code !== "unauthorized") console.error(hint);
  process.exitCode = 1;
}
