// The help text, from the tables of commands and settings.
import { settingRows } from "../settings/settings.ts";
import { sharedVariables } from "../settings/shared.ts";
import { wrapped } from "./text.ts";

const settingText = (row: (typeof settingRows)[number]): string =>
  `  --${row.flag} (${row.variable}, default ${row.default || "none"})\n      ${row.help}`;

/** Most settings do not apply to a worker. */
export function workerHelpText(): string {
  const own: readonly string[] = ["state", "rpc-server", "install-engine", "stop-grace"];
  return `Usage: model-gateway worker [--host 127.0.0.1] [--port 50052] [--threads N]

Lends this machine to a gateway elsewhere: runs a ggml-rpc-server and restarts it
when it dies. Ctrl+C ends it.

  --host ADDRESS   the IPv4 address of this machine on which it is reached;
                   127.0.0.1: from here only, 0.0.0.0: on every address
  --port PORT      50052
  --threads N      as many as the engine thinks fit

Anyone who reaches the port can use the worker and read the traffic: keep it in a
network that you trust.

Settings:
${settingRows
  .filter(({ flag }) => own.includes(flag))
  .map(settingText)
  .join("\n")}`;
}

export function helpText(
  commands: Readonly<Record<string, { readonly uses: Readonly<Record<string, string>> }>>,
): string {
  const uses = Object.entries(commands).flatMap(([name, { uses }]) =>
    Object.entries(uses).map(([use, help]) => useText(`${name} ${use}`.trimEnd(), help)),
  );
  const settings = settingRows.map(settingText);
  const shared = sharedVariables.map((row) => `  ${row.variable} (default ${row.fallback})\n      ${row.meaning}`);
  return `Usage: model-gateway COMMAND [SETTINGS]

Commands:
${uses.join("\n")}

  --json           plan, status, models, gc, rm and key as JSON
  --force          let pull, rm and gc change a gateway on --port that is not
                   the one of the state folder

Settings:
${settings.join("\n")}

Settings shared with other programs:
${shared.join("\n")}`;
}

/** In two columns, or in two lines where the use is long. */
function useText(use: string, help: string): string {
  const indent = " ".repeat(19);
  const isShort = use.length < 17;
  return `  ${use.padEnd(17)}${isShort ? "" : `\n${indent}`}${wrapped(help, 60).replaceAll("\n", `\n${indent}`)}`;
}
