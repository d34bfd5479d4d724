// The command line: picks the command, turns its outcome into an exit code. Does no work itself.
// Each command is imported when it runs: all of them together take half a second to load.

import { toGatewayError } from "../core/errors.ts";
import { type CommandLine, readSettings, version } from "../settings/settings.ts";
import { tellFailure } from "./failure.ts";
import { helpText, workerHelpText } from "./help.ts";
import { checkCommandLine, refuseStrayWords } from "./takes.ts";

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
      await (await import("./serve.ts")).serveCommand(line);
      return null;
    case "plan":
      return (await import("./ask.ts")).planCommand(line);
    case "status":
      return (await import("./ask.ts")).statusCommand(line);
    case "models":
      return (await import("./models.ts")).modelsCommand(line);
    case "pull":
      return (await import("./pull.ts")).pullCommand(line);
    case "rm":
      return (await import("./rm.ts")).rmCommand(line);
    case "gc":
      return (await import("./models.ts")).gcCommand(line);
    case "validate":
      return (await import("./validate.ts")).validateCommand(line.operands, line.settings.presetAllow);
    case "engine":
      return (await import("./engine.ts")).engineCommand(line);
    case "worker":
      return (await import("./worker.ts")).workerCommand(line);
    case "key":
      return (await import("./key.ts")).keyCommand(line);
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
