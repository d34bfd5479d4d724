// The command line: picks the command, turns its outcome into an exit code. Does no work itself.

import { toGatewayError } from "../core/errors.ts";
import { type CommandLine, readSettings, version } from "../settings/settings.ts";
import { planCommand, statusCommand } from "./ask.ts";
import { engineCommand } from "./engine.ts";
import { tellFailure } from "./failure.ts";
import { helpText, workerHelpText } from "./help.ts";
import { keyCommand } from "./key.ts";
import { gcCommand, modelsCommand } from "./models.ts";
import { pullCommand } from "./pull.ts";
import { rmCommand } from "./rm.ts";
import { refuseStrayWords, serveCommand } from "./serve.ts";
import { checkCommandLine } from "./takes.ts";
import { validateCommand } from "./validate.ts";
import { workerCommand } from "./worker.ts";

/** Resolves with the exit code; `serve` resolves when it listens and goes on. */
async function run(line: CommandLine): Promise<number | null> {
  // First, as it names what npm makes of the line.
  if (line.command === "serve") refuseStrayWords(line);
  checkCommandLine(line);
  if (line.help) {
    console.log(line.command === "worker" ? workerHelpText() : helpText());
    return 0;
  }
  switch (line.command) {
    case "serve":
      await serveCommand(line);
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
      console.log(helpText());
      return 0;
  }
}

try {
  const code = await run(readSettings(process.argv.slice(2)));
  if (code !== null) process.exitCode = code;
} catch (error) {
  const { argv, stderr } = process;
  tellFailure(toGatewayError(error), argv.includes("--json") || (argv.includes("serve") && !stderr.isTTY));
  process.exitCode = 1;
}
