#!/usr/bin/env node
// The command line: picks the command, turns its outcome into an exit code. Does no work itself.
import { planCommand, statusCommand } from "./cli/ask.ts";
import { engineCommand } from "./cli/engine.ts";
import { tellFailure } from "./cli/failure.ts";
import { helpText, workerHelpText } from "./cli/help.ts";
import { keyCommand } from "./cli/key.ts";
import { gcCommand, modelsCommand } from "./cli/models.ts";
import { pullCommand } from "./cli/pull.ts";
import { rmCommand } from "./cli/rm.ts";
import { serveCommand } from "./cli/serve.ts";
import { checkCommandLine } from "./cli/takes.ts";
import { validateCommand } from "./cli/validate.ts";
import { workerCommand } from "./cli/worker.ts";
import { toGatewayError } from "./core/errors.ts";
import { type CommandLine, readSettings, version } from "./settings.ts";

/** Resolves with the exit code; `serve` resolves when it listens and goes on. */
async function run(line: CommandLine): Promise<number | null> {
  checkCommandLine(line);
  if (line.help) {
    console.log(line.command === "worker" ? workerHelpText() : helpText());
    return 0;
  }
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
      return validateCommand(line.operands);
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
      console.log(helpText());
      return 0;
  }
}

try {
  const code = await run(readSettings(process.argv.slice(2)));
  if (code !== null) process.exitCode = code;
} catch (error) {
  tellFailure(toGatewayError(error), process.argv.includes("serve"));
  process.exitCode = 1;
}
