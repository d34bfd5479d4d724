#!/usr/bin/env node
// The command line: picks the command, turns its outcome into an exit code. Does no work itself.
import { planCommand, statusCommand } from "./cli/ask.ts";
import { engineCommand } from "./cli/engine.ts";
import { helpText, workerHelpText } from "./cli/help.ts";
import { keyCommand } from "./cli/key.ts";
import { gcCommand, modelsCommand } from "./cli/models.ts";
import { pullCommand } from "./cli/pull.ts";
import { rmCommand } from "./cli/rm.ts";
import { serveCommand } from "./cli/serve.ts";
import { validateCommand } from "./cli/validate.ts";
import { workerCommand } from "./cli/worker.ts";
import { GatewayError, toGatewayError } from "./core/errors.ts";
import { type CommandLine, readSettings, version } from "./settings.ts";

/** Resolves with the exit code; `serve` resolves when it listens and goes on. */
async function run(line: CommandLine): Promise<number | null> {
  if (line.help && line.command === "worker") {
    console.log(workerHelpText());
    return 0;
  }
  if (line.help || line.command === "help") {
    console.log(helpText());
    return 0;
  }
  if (line.expires !== undefined && line.command !== "key")
    throw new GatewayError("invalid_request", "--expires belongs to `model-gateway key create NAME`");
  if (line.yes && line.command !== "gc" && line.command !== "rm")
    throw new GatewayError("invalid_request", "--yes belongs to `model-gateway gc` and `model-gateway rm ID`");
  if (line.worker.threads !== undefined && line.command !== "worker")
    throw new GatewayError("invalid_request", "--threads belongs to `model-gateway worker`");
  switch (line.command) {
    case "serve":
      await serveCommand(line.settings);
      return null;
    case "plan":
      return planCommand(line);
    case "status":
      return statusCommand(line);
    case "models":
      return modelsCommand(line);
    case "pull":
      return pullCommand(line);
    case "rm":
      return rmCommand(line);
    case "gc":
      return gcCommand(line);
    case "validate":
      return validateCommand(line.operands, line.settings.presetAllow);
    case "engine":
      return engineCommand(line);
    case "worker":
      return workerCommand(line);
    case "key":
      return keyCommand(line);
    case "version":
      console.log(version);
      return 0;
    default:
      throw new GatewayError(
        "invalid_request",
        `there is no command ${line.command}; \`${line.settings.command("help")}\` lists them`,
      );
  }
}

try {
  const code = await run(readSettings(process.argv.slice(2)));
  if (code !== null) process.exitCode = code;
} catch (error) {
  const { message, hint, code } = toGatewayError(error);
  console.error(`model-gateway: ${message}`);
  // These say what to do already.
  if (code !== "invalid_request" && code !== "unauthorized" && code !== "engine_missing") console.error(hint);
  process.exitCode = 1;
}
