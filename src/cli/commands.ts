// Every command as data: what it takes, what it does, its help. Checked here, run by main.ts.
// Each is imported when it runs: all of them together take half a second to load.
import { GatewayError } from "../core/errors.ts";
import { type CommandLine, settingRows, version } from "../settings/settings.ts";
import { sharedVariables } from "../settings/shared.ts";
import { wrapped } from "./text.ts";

interface Command {
  /** The last may be left out where it stands in brackets, and repeated where it has `…`. */
  readonly operands: string;
  /** Flags that its use shows. */
  readonly shown?: string;
  readonly flags: readonly string[];
  readonly help: string;
  /** Resolves with the exit code; `serve` resolves with null when it listens. */
  readonly run: (line: CommandLine) => Promise<number | null>;
}

const gateway: readonly string[] = ["host", "port", "state"];

/** By name, which may be two words. */
const commands: Readonly<Record<string, Command>> = {
  serve: {
    operands: "",
    flags: settingRows.map(({ flag }) => flag),
    help: "run the gateway",
    run: async (line) => (await import("./serve.ts")).serveCommand(line),
  },
  plan: {
    operands: "",
    shown: "[-f FILE] [--offline]",
    flags: [...gateway, "config", "preset-allow", "file", "offline", "json"],
    help: "show every step to the end, with -f FILE or - for another document; --offline asks the hub nothing. Exit 0 nothing, 2 changes, 1 error, a model that the hub refuses, or gateway.yaml is not in force",
    run: async (line) => (await import("./plan.ts")).planCommand(line),
  },
  diff: {
    operands: "",
    shown: "-f FILE",
    flags: [...gateway, "file", "json"],
    help: "show in which fields a document differs from that of the gateway; - is standard input. Exit 0 nowhere, 2 it differs, 1 error",
    run: async (line) => (await import("./diff.ts")).diffCommand(line),
  },
  apply: {
    operands: "",
    shown: "-f FILE [--dry-run] [--wait] [--timeout 300] [--revision COMMIT]",
    flags: [...gateway, "file", "dry-run", "wait", "timeout", "revision", "json", "force"],
    help: "have the gateway apply a document, - is standard input; with --wait until this text is in force. Exit 0 done, 1 error or not in force, 2 a dry run has changes",
    run: async (line) => (await import("./apply.ts")).applyCommand(line),
  },
  wait: {
    operands: "",
    shown: "--for synced|ready|model=ID [--generation N] [--revision COMMIT] [--timeout 300]",
    flags: [...gateway, "for", "generation", "revision", "timeout", "json"],
    help: "wait until everything is as the document says, chats can be served, or a model can be asked. Exit 0 it is so, 1 it is not, or will not be",
    run: async (line) => (await import("./wait.ts")).waitCommand(line),
  },
  status: {
    operands: "",
    shown: "[--watch]",
    flags: [...gateway, "json", "watch"],
    help: "show what is true, and what needs attention first: exit 0 ready, 2 not ready, 1 as for plan",
    run: async (line) => (await import("./status.ts")).statusCommand(line),
  },
  ps: {
    operands: "",
    flags: [...gateway, "json"],
    help: "list the loaded models: context, requests in flight, memory",
    run: async (line) => (await import("./status.ts")).psCommand(line),
  },
  logs: {
    operands: "[MODEL]",
    shown: "[-f] [--tail 1000]",
    flags: [...gateway, "follow", "tail"],
    help: "print the engines' output: of a model, of router, whisper-server or speech, or of all; -f goes on with new lines",
    run: async (line) => (await import("./logs.ts")).logsCommand(line),
  },
  history: {
    operands: "[N]",
    flags: [...gateway, "json"],
    help: "list the last 100 generations of the document with their authors and outcomes, and what drifted; with N what that one changed",
    run: async (line) => (await import("./history.ts")).historyCommand(line),
  },
  rollback: {
    operands: "N",
    flags: [...gateway, "json", "force"],
    help: "make a new generation with the document of generation N, and wait until it is in force: exit 0 done, 1 error",
    run: async (line) => (await import("./history.ts")).rollbackCommand(line),
  },
  export: {
    operands: "",
    flags: [...gateway, "config", "preset-allow", "json"],
    help: "print the document, with the changes of all calls, as YAML; without a gateway as the next start would find it",
    run: async (line) => (await import("./document.ts")).exportCommand(line),
  },
  reset: {
    operands: "[FIELD…]",
    flags: [...gateway, "json", "force"],
    help: "take out what calls have set, all or these fields, so that the applied file is the document again: exit 0 done, 1 error",
    run: async (line) => (await import("./document.ts")).resetCommand(line),
  },
  models: {
    operands: "",
    flags: [...gateway, "json"],
    help: "list the model cache: sizes, last use, what is stale; plan, models and gc work without a running gateway",
    run: async (line) => (await import("./models.ts")).modelsCommand(line),
  },
  pull: {
    operands: "ID",
    flags: [...gateway, "force"],
    help: "add a model to the document and follow its download; Ctrl+C leaves it, and the download continues. Exit 0 done, 130 left, 1 error",
    run: async (line) => (await import("./pull.ts")).pullCommand(line),
  },
  rm: {
    operands: "ID",
    shown: "[--yes]",
    flags: [...gateway, "json", "yes", "force"],
    help: "delete a model's files: exit 0 done, 2 not confirmed, 1 error",
    run: async (line) => (await import("./rm.ts")).rmCommand(line),
  },
  bench: {
    operands: "ID",
    flags: [...gateway, "json", "force"],
    help: "measure tokens per second of a model with its settings, by the engine's llama-bench; it is unloaded before, and its requests wait. Ctrl+C ends it",
    run: async (line) => (await import("./bench.ts")).benchCommand(line),
  },
  gc: {
    operands: "",
    shown: "[--yes]",
    flags: [...gateway, "json", "yes", "force"],
    help: "list what nothing in the cache uses, with --yes delete it: exit 0 nothing left, 2 something remains, 1 error",
    run: async (line) => (await import("./gc.ts")).gcCommand(line),
  },
  validate: {
    operands: "FILE…",
    flags: ["preset-allow", "state", "llama-server", "json"],
    help: "check documents, - is standard input: keys, values, files beside them, options by the engine here. Exit 0 valid, 1 not",
    run: async (line) => (await import("./validate.ts")).validateCommand(line),
  },
  "engine install": {
    operands: "[llama|whisper|sherpa]",
    flags: ["state"],
    help: "put an engine into the state folder",
    run: async (line) => (await import("./engine.ts")).engineCommand(line),
  },
  worker: {
    operands: "",
    shown: "[--host 127.0.0.1] [--port 50052] [--threads N]",
    flags: [...gateway, "rpc-server", "install-engine", "stop-grace", "threads"],
    help: "lend this machine to a gateway: run a ggml-rpc-server on this IPv4 address and restart it",
    run: async (line) => (await import("./worker.ts")).workerCommand(line),
  },
  "key create": {
    operands: "NAME",
    shown: "[--scope chat] [--expires 30d|2027-01-01]",
    flags: ["state", "json", "expires", "scope"],
    help: "create a license key and print it, once; it is valid at once. Scope chat: list models, use them and read the status, nothing else",
    run: async (line) => (await import("./key.ts")).createCommand(line),
  },
  "key list": {
    operands: "",
    flags: ["state", "json"],
    help: "names, scopes and times of the keys",
    run: async (line) => (await import("./key.ts")).listCommand(line),
  },
  "key revoke": {
    operands: "NAME",
    flags: ["state", "json"],
    help: "revoke a key, from the next request on",
    run: async (line) => (await import("./key.ts")).revokeCommand(line),
  },
  version: { operands: "", flags: ["version"], help: "print the version", run: async () => print(version) },
  help: {
    operands: "[COMMAND…]",
    flags: [],
    help: "print this text, or what one command takes",
    run: async (line) => {
      const [command, ...operands] = line.operands;
      return command === undefined ? print(helpText()) : runCommand({ ...line, command, operands, help: true });
    },
  },
};

function print(text: string): number {
  console.log(text);
  return 0;
}

/** Errors: `invalid_request` for an unknown command, and for what a command does not take; then what the command throws. */
export async function runCommand(line: CommandLine): Promise<number | null> {
  const { name, operands } = commandOf(line);
  if (line.help) return print(name === "help" ? helpText() : helpOf(name));
  return (commands[name] as Command).run({ ...line, operands });
}

/** What a command does not take is an error: `plan --config F` ignored F beside a running gateway and said "Nothing to do." */
export function commandOf({ command, operands: words, flags, settings, help }: CommandLine): {
  readonly name: string;
  readonly operands: readonly string[];
} {
  const refuse = (why: string): never => {
    throw new GatewayError("invalid_request", `${why}; \`${settings.command("help")}\` lists what there is`);
  };
  const given = flags.filter((flag) => flag !== "help");
  if (command === "" && given.length > 0) refuse(`--${given[0]} needs a command, such as serve`);
  const pair = `${command} ${words[0]}`;
  const [name, operands] = Object.hasOwn(commands, pair) ? [pair, words.slice(1)] : [command || "help", words];
  const found = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (!found) return refuse(`there is no command ${[command, ...words].join(" ")}`);
  const flag = given.find((each) => !found.flags.includes(each));
  if (flag !== undefined) {
    const takers = Object.entries(commands).flatMap(([other, { flags }]) => (flags.includes(flag) ? other : []));
    refuse(`${name} does not take --${flag}, which is for ${takers.join(", ")}`);
  }
  // Help explains what is missing, and more.
  if (help) return { name, operands };
  const names = found.operands.split(" ").filter((operand) => operand !== "");
  const extra = found.operands.includes("…") ? undefined : operands[names.length];
  if (extra !== undefined) refuse(`${name} does not take ${JSON.stringify(extra)}`);
  const missing = names[operands.length];
  if (missing !== undefined && !missing.startsWith("[")) refuse(`${name} needs ${missing.replace("…", "")}`);
  return { name, operands };
}

export function helpText(): string {
  return `Usage: model-gateway COMMAND [SETTINGS]

Commands:
${Object.keys(commands).map(useWithHelp).join("\n")}

  --json           plan, diff, apply, wait, status, ps, history, models,
                   validate, bench, gc, rm, rollback, reset, export and key as
                   JSON
  --force          let apply, pull, rm, bench, gc, rollback and reset change a
                   gateway on --port that is not the one of the state folder
  --help           what a single command takes

Settings:
${settingRows.map(settingText).join("\n")}

Settings shared with other programs:
${sharedVariables.map((row) => `  ${row.variable} (default ${row.fallback})\n      ${row.meaning}`).join("\n")}`;
}

function helpOf(name: string): string {
  const { flags, shown = "", help } = commands[name] as Command;
  const more = ["json", "force"].map((flag) => (flags.includes(flag) ? ` [--${flag}]` : "")).join("");
  const settings = settingRows.filter(({ flag }) => flags.includes(flag) && !shown.includes(`--${flag} `));
  const rows = settings.map(settingText).join("\n") || "  none";
  return `Usage: model-gateway ${useOf(name)}${more}\n\n${wrapped(help, 79)}\n\nSettings:\n${rows}`;
}

const settingText = (row: (typeof settingRows)[number]): string =>
  `  --${row.flag} (${row.variable}, default ${row.default || "none"})\n      ${row.help}`;

function useOf(name: string): string {
  const { operands, shown = "" } = commands[name] as Command;
  return [name, operands, shown].filter((part) => part !== "").join(" ");
}

/** In two columns, or in two lines where the use is long. */
function useWithHelp(name: string): string {
  const use = useOf(name);
  const indent = " ".repeat(19);
  const help = wrapped((commands[name] as Command).help, 60).replaceAll("\n", `\n${indent}`);
  return `  ${use.padEnd(17)}${use.length < 17 ? "" : `\n${indent}`}${help}`;
}
