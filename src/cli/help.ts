// The help texts: the list of commands, what one command takes, the settings. Pure.
import { commandFlags, settingRows } from "../settings/settings.ts";
import { sharedVariables } from "../settings/shared.ts";
import type { Command, Commands } from "./table/command.ts";
import { wrapped } from "./text.ts";

const columns = 79;

export function helpText(groups: Readonly<Record<string, Commands>>): string {
  const sections = Object.entries(groups).map(
    ([title, commands]) => `${title}:\n${Object.entries(commands).map(commandRow).join("\n")}`,
  );
  return `Usage: model-gateway COMMAND [FLAGS]

${sections.join("\n\n")}

\`model-gateway help COMMAND\` shows flags, exit codes and examples of a command,
\`model-gateway help settings\` the settings of serve.`;
}

const commandRow = ([name, { operands, summary }]: readonly [string, Command]): string =>
  row(`${name} ${operands}`, summary);

/** `key create` of `key`, which may be a command or not. */
export function namesBelow(name: string, commands: Commands): string[] {
  return Object.keys(commands).filter((other) => other.startsWith(`${name} `));
}

/** In at most 30 lines. */
export function helpOf(name: string, commands: Commands): string {
  const below = namesBelow(name, commands).map((other) => commandRow([other, commands[other] as Command]));
  const more = below.length > 0 ? [`Commands:\n${below.join("\n")}`] : [];
  const command = commands[name];
  if (!command) return [`Usage: model-gateway ${name} COMMAND`, ...more].join("\n\n");
  const { summary, notes = "", exit, examples } = command;
  const sections = [
    wrapped(`Usage: model-gateway ${useOf(name, command)}`, columns, "  "),
    wrapped(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}. ${notes}`.trimEnd(), columns),
    `Examples:\n${examples.map((example) => `  model-gateway ${example}`).join("\n")}`,
    ...more,
    ...flagSections(command),
    ...(exit === undefined ? [] : [wrapped(`Exit code: ${exit}.`, columns)]),
  ];
  return sections.join("\n\n");
}

/** A command as it is typed. */
export function useOf(name: string, { operands, shown = "", flags }: Command): string {
  const more = ["json", "force"].filter((flag) => flags.includes(flag)).map((flag) => `[--${flag}]`);
  return [name, operands, shown, ...more].filter((part) => part !== "").join(" ");
}

/** Of serve, which has all of them. */
const mainSettings: readonly string[] = ["host", "port", "state", "config", "models-max", "log"];

function flagSections({ flags, shown = "" }: Command): string[] {
  const taken = settingRows.filter(({ flag }) => flags.includes(flag) && !shown.includes(`--${flag} `));
  const isServe = taken.length === settingRows.length;
  const where = isServe ? [] : taken.filter(({ flag }) => ["host", "port", "state"].includes(flag));
  const settings = taken.filter((each) => (isServe ? mainSettings.includes(each.flag) : !where.includes(each)));
  const own = Object.entries(commandFlags).filter(([flag]) => flags.includes(flag));
  const which = where.length > 1 ? "Which gateway." : "Which state folder.";
  const rows = [
    ...own.map(([flag, { help, ...rest }]) => row(`--${flag}${"value" in rest ? ` ${rest.value}` : ""}`, help)),
    ...settings.map(({ flag, help }) => row(`--${flag}`, help.replace(/[.;] .*/, "."))),
    ...(isServe ? [row("--…", `${taken.length} settings in all: \`model-gateway help settings\`.`)] : []),
    ...(where.length > 0 ? [row(where.map(({ flag }) => `--${flag}`).join(", "), which)] : []),
  ];
  return rows.length > 0 ? [`Flags:\n${rows.join("\n")}`] : [];
}

/** In two columns, or in two lines where the first is long. */
function row(left: string, right: string): string {
  const width = 22;
  const indent = " ".repeat(width + 2);
  const text = wrapped(right, columns - width - 2).replaceAll("\n", `\n${indent}`);
  const name = left.trimEnd();
  return `  ${name.padEnd(width)}${name.length < width ? "" : `\n${indent}`}${text}`;
}

export function settingsText(): string {
  const settings = settingRows.map(
    ({ flag, variable, default: fallback, help }) =>
      `  --${flag} (${variable}, default ${fallback || "none"})\n      ${help}`,
  );
  const shared = sharedVariables.map(
    ({ variable, fallback, meaning }) => `  ${variable} (default ${fallback})\n      ${meaning}`,
  );
  return `Settings:\n${settings.join("\n")}\n\nSettings shared with other programs:\n${shared.join("\n")}`;
}
