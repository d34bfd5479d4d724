// Every command, and which of them a command line means. What it does not take is an error: `plan --config F` ignored F beside a
// running gateway and said "Nothing to do."
import { GatewayError } from "../core/errors.ts";
import { type CommandLine, version } from "../settings/settings.ts";
import { helpOf, helpText, namesBelow, settingsText } from "./help.ts";
import type { Command, Commands } from "./table/command.ts";
import { documentCommands } from "./table/document.ts";
import { gatewayCommands } from "./table/gateway.ts";
import { modelCommands } from "./table/models.ts";
import { speechCommands } from "./table/speech.ts";

const otherCommands: Commands = {
  completion: {
    operands: "bash|zsh|fish [WORD…]",
    flags: ["host", "port", "state"],
    summary: "print what makes a shell complete commands, flags and models",
    notes: "Before WORDs -- is needed: they are completed as that shell's own call does it.",
    exit: "0, 1 error",
    examples: [
      "completion bash > ~/.local/share/bash-completion/completions/model-gateway",
      "completion fish | source",
    ],
    run: async (line) => (await import("./completion.ts")).completionCommand(line, commands),
  },
  version: {
    operands: "",
    flags: ["version"],
    summary: "print the version",
    exit: "0",
    examples: ["version", "--version"],
    run: async () => print(version),
  },
  help: {
    operands: "[COMMAND…]",
    flags: [],
    summary: "print the list of commands, or what one takes",
    notes: "`help settings` lists the settings of serve.",
    exit: "0",
    examples: ["help run", "help settings"],
    run: async (line) => {
      const [command, ...operands] = line.operands;
      if (command === undefined) return print(helpText(groups));
      if (command === "settings") return print(settingsText());
      return runCommand({ ...line, command, operands, help: true });
    },
  },
};

/** As help and docs list them. */
export const groups: Readonly<Record<string, Commands>> = {
  Models: modelCommands,
  Document: documentCommands,
  Gateway: gatewayCommands,
  Speech: speechCommands,
  Others: otherCommands,
};

const commands: Commands = Object.assign({}, ...Object.values(groups)) as Commands;

function print(text: string): number {
  console.log(text);
  return 0;
}

/** Errors: `invalid_request` for an unknown command, and for what a command does not take; then what the command throws. */
export async function runCommand(line: CommandLine): Promise<number | null> {
  const { name, operands } = commandOf(line);
  if (line.help) return print(name === "help" ? helpText(groups) : helpOf(name, commands));
  return (commands[name] as Command).run({ ...line, operands });
}

export function commandOf({ command, operands: words, flags, settings, help }: CommandLine): {
  readonly name: string;
  readonly operands: readonly string[];
} {
  const refuse = (why: string): never => {
    throw new GatewayError("invalid_request", `${why}; \`${settings.command("help")}\` lists what there is`);
  };
  const misuse = (why: string): never => {
    throw new GatewayError(
      "invalid_request",
      `${why}; \`${settings.command("help", ...name.split(" "))}\` has examples`,
    );
  };
  const given = flags.filter((flag) => flag !== "help");
  if (command === "" && given.length > 0) refuse(`--${given[0]} needs a command, such as serve`);
  const pair = `${command} ${words[0]}`;
  const [name, operands] = Object.hasOwn(commands, pair) ? [pair, words.slice(1)] : [command || "help", words];
  const found = Object.hasOwn(commands, name) ? commands[name] : undefined;
  const second = namesBelow(name, commands).map((below) => below.slice(name.length + 1));
  if (!found) {
    if (second.length === 0) return refuse(`there is no command ${[command, ...words].join(" ")}`);
    if (help && words.length === 0) return { name, operands };
    return refuse(`${name} needs one of ${second.join(", ")}`);
  }
  const flag = given.find((each) => !found.flags.includes(each));
  if (flag !== undefined) {
    const takers = Object.entries(commands).flatMap(([other, { flags }]) => (flags.includes(flag) ? other : []));
    refuse(`${name} does not take --${flag}, which is for ${takers.join(", ")}`);
  }
  // Help explains what is missing, and more.
  if (help) return { name, operands };
  const names = found.operands.split(" ").filter((operand) => operand !== "");
  const extra = found.operands.includes("…") ? undefined : operands[names.length];
  const others = second.length > 0 ? `, only ${second.join(", ")}` : "";
  if (extra !== undefined) misuse(`${name} does not take ${JSON.stringify(extra)}${others}`);
  const missing = names[operands.length];
  if (missing !== undefined && !missing.startsWith("[")) misuse(`${name} needs ${missing.replace("…", "")}`);
  return { name, operands };
}
