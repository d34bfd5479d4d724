// Which operands and flags each command takes. One rule for all: any other is an error. `plan --config F` ignored F beside a running
// gateway and ended with "Nothing to do.", exit code 0.
import { GatewayError } from "../core/errors.ts";
import { type CommandLine, settingRows } from "../settings/settings.ts";

interface Takes {
  /** As the help has them; the last may be left out where it stands in brackets. */
  readonly operands: string;
  readonly flags: readonly string[];
}

const gateway: readonly string[] = ["host", "port", "state"];

const commands: Readonly<Record<string, Takes>> = {
  serve: { operands: "", flags: settingRows.map(({ flag }) => flag) },
  plan: { operands: "", flags: [...gateway, "config", "preset-allow", "json"] },
  status: { operands: "", flags: [...gateway, "json"] },
  models: { operands: "", flags: [...gateway, "json"] },
  pull: { operands: "ID", flags: [...gateway, "force"] },
  rm: { operands: "ID", flags: [...gateway, "json", "yes", "force"] },
  gc: { operands: "", flags: [...gateway, "json", "yes", "force"] },
  validate: { operands: "FILE", flags: ["preset-allow"] },
  engine: { operands: "install [llama|whisper|sherpa]", flags: ["state"] },
  worker: { operands: "", flags: [...gateway, "rpc-server", "install-engine", "stop-grace", "threads"] },
  key: { operands: "create|list|revoke [NAME]", flags: ["state", "json", "expires", "scope"] },
  version: { operands: "", flags: ["version"] },
  help: { operands: "", flags: [] },
};

/** Errors: `invalid_request` for an unknown command, and for what a command does not take. */
export function checkCommandLine({ command, operands, flags, settings }: CommandLine): void {
  const help = `\`${settings.command("help")}\` lists what there is`;
  const refuse = (why: string): never => {
    throw new GatewayError("invalid_request", `${why}; ${help}`);
  };
  const given = flags.filter((flag) => flag !== "help");
  if (command === "" && given.length > 0) refuse(`--${given[0]} needs a command, such as serve`);
  const takes = Object.hasOwn(commands, command || "help") ? commands[command || "help"] : undefined;
  if (!takes) return refuse(`there is no command ${command}`);
  const flag = given.find((name) => !takes.flags.includes(name));
  if (flag !== undefined) refuse(`${command} does not take --${flag}, which is for ${takersOf(flag)}`);
  // Help explains what is missing, and more.
  if (flags.includes("help")) return;
  const names = takes.operands.split(" ").filter((name) => name !== "");
  const extra = operands[names.length];
  if (extra !== undefined) refuse(`${command} does not take ${JSON.stringify(extra)}`);
  const missing = names[operands.length];
  if (missing !== undefined && !missing.startsWith("[")) refuse(`${command} needs ${missing}`);
}

function takersOf(flag: string): string {
  const takers = Object.entries(commands).flatMap(([name, { flags }]) => (flags.includes(flag) ? name : []));
  return takers.join(", ");
}

/** Errors: `invalid_request` for words, and for flags that npm kept: the gateway would listen elsewhere than was asked for. */
export function refuseStrayWords({ operands, settings: { environment, command } }: CommandLine): void {
  const isNpmStart = environment["npm_lifecycle_event"] === "start";
  const kept = settingRows.flatMap(({ flag }) => {
    const value = isNpmStart ? environment[`npm_config_${flag.replaceAll("-", "_")}`] : undefined;
    return value === undefined ? [] : [{ flag, value: value === "true" ? null : value }];
  });
  if (kept.length > 0) {
    // Of `--port 9000` npm keeps the flag and hands on the value, as a word without a name.
    const [alone] = kept.length === 1 ? operands : [];
    const flags = kept.flatMap(({ flag, value }) => [`--${flag}`, value ?? alone ?? "VALUE"]);
    const names = kept.map(({ flag }) => `--${flag}`).join(", ");
    throw new GatewayError(
      "invalid_request",
      `npm kept ${names} for itself: put flags behind --, as in \`${command("serve", ...flags)}\``,
    );
  }
  if (operands.length > 0)
    throw new GatewayError(
      "invalid_request",
      `serve takes no ${JSON.stringify(operands.join(" "))}: name what it sets, as in \`${command("serve", "--port", "N")}\``,
    );
}
