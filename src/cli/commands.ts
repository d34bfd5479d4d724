// Every command as data: what it takes, what it does, its help. Checked here, run by main.ts.
// Each is imported when it runs: all of them together take half a second to load.
import { GatewayError } from "../core/errors.ts";
import { type CommandLine, settingRows, version } from "../settings/settings.ts";
import { helpText, workerHelpText } from "./help.ts";

export interface Command {
  /** The last may be left out where it stands in brackets. */
  readonly operands: string;
  readonly flags: readonly string[];
  /** Its uses, without its name, each with its help. */
  readonly uses: Readonly<Record<string, string>>;
  /** Resolves with the exit code; `serve` resolves with null when it listens. */
  readonly run: (line: CommandLine) => Promise<number | null>;
}

const gateway: readonly string[] = ["host", "port", "state"];

export const commands: Readonly<Record<string, Command>> = {
  serve: {
    operands: "",
    flags: settingRows.map(({ flag }) => flag),
    uses: { "": "run the gateway" },
    run: async (line) => (await import("./serve.ts")).serveCommand(line),
  },
  plan: {
    operands: "",
    flags: [...gateway, "config", "preset-allow", "json"],
    uses: { "": "show what will be done: exit 0 nothing, 2 changes, 1 error or gateway.yaml is not in force" },
    run: async (line) => (await import("./ask.ts")).planCommand(line),
  },
  status: {
    operands: "",
    flags: [...gateway, "json"],
    uses: { "": "show what is true: exit 0 ready, 2 not ready, 1 as for plan" },
    run: async (line) => (await import("./ask.ts")).statusCommand(line),
  },
  models: {
    operands: "",
    flags: [...gateway, "json"],
    uses: {
      "": "list the model cache: sizes, last use, what is stale; plan, models and gc work without a running gateway",
    },
    run: async (line) => (await import("./models.ts")).modelsCommand(line),
  },
  pull: {
    operands: "ID",
    flags: [...gateway, "force"],
    uses: {
      ID: "add a model to the document and follow its download; Ctrl+C leaves it, and the download continues. Exit 0 done, 130 left, 1 error",
    },
    run: async (line) => (await import("./pull.ts")).pullCommand(line),
  },
  rm: {
    operands: "ID",
    flags: [...gateway, "json", "yes", "force"],
    uses: { "ID [--yes]": "delete a model's files: exit 0 done, 2 not confirmed, 1 error" },
    run: async (line) => (await import("./rm.ts")).rmCommand(line),
  },
  gc: {
    operands: "",
    flags: [...gateway, "json", "yes", "force"],
    uses: {
      "[--yes]":
        "list what nothing in the cache uses, with --yes delete it: exit 0 nothing left, 2 something remains, 1 error",
    },
    run: async (line) => (await import("./models.ts")).gcCommand(line),
  },
  validate: {
    operands: "FILE",
    flags: ["preset-allow"],
    uses: { FILE: "check a gateway.yaml: exit 0 valid, 1 not" },
    run: async (line) => (await import("./validate.ts")).validateCommand(line),
  },
  engine: {
    operands: "install [llama|whisper|sherpa]",
    flags: ["state"],
    uses: { "install [llama|whisper|sherpa]": "put an engine into the state folder" },
    run: async (line) => (await import("./engine.ts")).engineCommand(line),
  },
  worker: {
    operands: "",
    flags: [...gateway, "rpc-server", "install-engine", "stop-grace", "threads"],
    uses: {
      "[--host 127.0.0.1] [--port 50052] [--threads N]":
        "lend this machine to a gateway: run a ggml-rpc-server and restart it",
    },
    run: async (line) => (await import("./worker.ts")).workerCommand(line),
  },
  key: {
    operands: "create|list|revoke [NAME]",
    flags: ["state", "json", "expires", "scope"],
    uses: {
      "create NAME [--scope chat] [--expires 30d|2027-01-01]":
        "create a license key and print it, once; it is valid at once. Scope chat: list models, use them and read the status, nothing else",
      list: "names, scopes and times of the keys",
      "revoke NAME": "revoke a key, from the next request on",
    },
    run: async (line) => (await import("./key.ts")).keyCommand(line),
  },
  version: { operands: "", flags: ["version"], uses: { "": "print the version" }, run: async () => print(version) },
  help: { operands: "", flags: [], uses: { "": "print this text" }, run: async () => print(helpText(commands)) },
};

function print(text: string): number {
  console.log(text);
  return 0;
}

/** Errors: `invalid_request` for an unknown command, and for what a command does not take; then what the command throws. */
export async function runCommand(line: CommandLine): Promise<number | null> {
  const command = commandOf(line);
  if (line.help) return print(line.command === "worker" ? workerHelpText() : helpText(commands));
  return command.run(line);
}

/**
 * One rule for all commands: what they do not take is an error. `plan --config F` ignored F beside a running gateway and ended
 * with "Nothing to do.", exit code 0.
 */
export function commandOf({ command, operands, flags, settings, help }: CommandLine): Command {
  const refuse = (why: string): never => {
    throw new GatewayError("invalid_request", `${why}; \`${settings.command("help")}\` lists what there is`);
  };
  const given = flags.filter((flag) => flag !== "help");
  const name = command || "help";
  if (command === "" && given.length > 0) refuse(`--${given[0]} needs a command, such as serve`);
  const found = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (!found) return refuse(`there is no command ${command}`);
  if (name === "serve") requireFlagsPassedOn(settings, operands);
  const flag = given.find((each) => !found.flags.includes(each));
  if (flag !== undefined) {
    const takers = Object.entries(commands).flatMap(([other, { flags }]) => (flags.includes(flag) ? other : []));
    refuse(`${command} does not take --${flag}, which is for ${takers.join(", ")}`);
  }
  // Help explains what is missing, and more.
  if (help) return found;
  const names = found.operands.split(" ").filter((operand) => operand !== "");
  const extra = operands[names.length];
  if (extra !== undefined) refuse(`${command} does not take ${JSON.stringify(extra)}`);
  const missing = names[operands.length];
  if (missing !== undefined && !missing.startsWith("[")) refuse(`${command} needs ${missing}`);
  return found;
}

/** Errors: `invalid_request` for flags that npm kept for itself: the gateway would listen elsewhere than was asked for. */
function requireFlagsPassedOn(
  { environment, command }: CommandLine["settings"],
  operands: CommandLine["operands"],
): void {
  if (environment["npm_lifecycle_event"] !== "start") return;
  const [word = ""] = operands.length === 1 ? operands : ["VALUE"];
  const kept = settingRows.flatMap(({ flag }) => {
    // Of `--port 9000` npm keeps the flag and passes the value on, as an operand.
    const value = environment[`npm_config_${flag.replaceAll("-", "_")}`];
    return value === undefined ? [] : [`--${flag}`, value === "true" ? word : value];
  });
  if (kept.length === 0) return;
  throw new GatewayError(
    "invalid_request",
    `npm kept ${kept.filter((word) => word.startsWith("--")).join(", ")} for itself: put flags behind --, as in \`${command("serve", ...kept)}\``,
  );
}
