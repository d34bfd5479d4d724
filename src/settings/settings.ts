// Everything that is set from outside: flags and environment, read once, here and nowhere else.
import { existsSync, readFileSync } from "node:fs";
import { basename, delimiter, dirname, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { GatewayError } from "../core/errors.ts";
import { type OwnCommand, ownCommand } from "../core/own-command.ts";
import type { SettingRow } from "./kinds.ts";
import { prefixProblem } from "./prefixes.ts";

import {
  type Environment,
  home,
  hubEndpoint,
  hubTokenFile,
  licenseKey,
  modelCacheDir,
  secretIn,
  tokenName,
} from "./shared.ts";

import { settingTable } from "./table.ts";

type SettingName = keyof typeof settingTable;

/** The value of each setting, as its kind reads it. */
type SettingValues = { readonly [Name in SettingName]: ReturnType<(typeof settingTable)[Name]["read"]> };

/** The rows of the table as they were read, and what follows from them and from the environment. */
export interface Settings extends Omit<SettingValues, "hubMirrorKeyFile"> {
  readonly stateDir: string;
  readonly configPath: string;
  /** Whether the address is given: commands ask there, else at the address in the state folder's lock. */
  readonly isAddressGiven: boolean;
  readonly cacheDir: string;
  readonly hubEndpoint: string;
  readonly hubToken: string | undefined;
  /** Where the token comes from; null: from the environment, or there is none. */
  readonly hubTokenPath: string | null;
  /** Of the gateway that is the mirror. */
  readonly hubMirrorKey: string | undefined;
  /** A single license key, from a file or the environment. */
  readonly licenseKey: string | undefined;
  /** For messages that name a command of ours. */
  readonly command: OwnCommand;
  /** Of the command that runs, for the gateway that it calls: `model-gateway/0.1.0 rollback`. */
  readonly userAgent: string;
  /** For the engines' own environment, which takes from it what it needs. */
  readonly environment: Environment;
}

export interface CommandLine {
  /** Empty where none was given. */
  readonly command: string;
  readonly operands: readonly string[];
  /** Those that were given on the command line, without dashes. */
  readonly flags: readonly string[];
  readonly settings: Settings;
  readonly json: boolean;
  readonly help: boolean;
  /** Do it without asking. */
  readonly yes: boolean;
  /** Change a gateway that is not the one of the state folder. */
  readonly force: boolean;
  /** The text of a flag as the command line has it. */
  readonly given: (flag: string) => string | undefined;
}

/** Flags of single commands, which no variable sets; `value` is what follows one. */
export const commandFlags = {
  json: { type: "boolean", help: "Print JSON, for programs." },
  yes: { type: "boolean", help: "Do it without a question." },
  force: { type: "boolean", help: "Change a gateway on --port that is not the one of the state folder." },
  file: { type: "string", value: "FILE", help: "The file; - is standard input, or output. Short: -f." },
  offline: { type: "boolean", help: "Ask the hub nothing." },
  "dry-run": { type: "boolean", help: "Show the plan and change nothing." },
  wait: { type: "boolean", help: "End when it is in force." },
  timeout: { type: "string", value: "SECONDS", help: "How long to wait; 300." },
  revision: { type: "string", value: "COMMIT", help: "Where the text comes from." },
  for: { type: "string", value: "GOAL", help: "synced, ready or model=ID." },
  generation: { type: "string", value: "N", help: "Of this generation of the document, or a later one." },
  all: { type: "string", value: "URL,…", help: "Of these gateways, separated by commas." },
  watch: { type: "boolean", help: "Draw it again each second." },
  follow: { type: "boolean", help: "Go on with new lines. Short: -f." },
  tail: { type: "string", value: "LINES", help: "How many of the last lines; 1000." },
  limit: { type: "string", value: "N", help: "How many at most; 20." },
  pull: { type: "boolean", help: "Pull the model first if it is not here." },
  system: { type: "string", value: "TEXT", help: "What the model is told before the chat." },
  voice: { type: "string", value: "VOICE", help: "Another voice than the document's." },
  write: { type: "boolean", help: "Add the models to gateway.yaml; its comments stay." },
  pre: { type: "boolean", help: "Check this machine before the first start." },
  bundle: { type: "boolean", help: "Write a support archive, with secrets struck out." },
  expires: { type: "string", value: "WHEN", help: "12h, 30d, 4w or a date; without it never." },
  scope: { type: "string", value: "SCOPE", help: "all, or chat." },
  threads: { type: "string", value: "N", help: "Of the worker; without it as many as the engine takes." },
  help: { type: "boolean", short: "h", help: "Show what the command takes." },
  version: { type: "boolean", short: "v", help: "Print the version." },
} as const;

/** Errors: `invalid_request` for an unknown flag or a value that is none. */
export function readSettings(args: readonly string[], environment: Environment = { ...process.env }): CommandLine {
  const { values, positionals } = parse(args, environment);
  const given = (flag: string): string | undefined => {
    const value = values[flag];
    return typeof value === "string" ? value : undefined;
  };
  const [command = values["version"] === true ? "version" : "", ...operands] = positionals;
  return {
    command,
    operands,
    flags: Object.keys(values),
    // An empty variable counts as none.
    settings: build(({ flag, variable }) => given(flag) ?? (environment[variable] || undefined), environment, command),
    json: values["json"] === true,
    yes: values["yes"] === true,
    force: values["force"] === true,
    help: values["help"] === true,
    given,
  };
}

function parse(args: readonly string[], environment: Environment): ReturnType<typeof parseArgs> {
  const settings = Object.fromEntries(settingRows.map(({ flag }) => [flag, { type: "string" as const }]));
  const options = { ...settings, ...commandFlags };
  const common = { args: args.map(withValue), allowPositionals: true } as const;
  // As everywhere, `-f` follows a log, and names the file of all else.
  const [command] = parseArgs({ ...common, options, strict: false }).positionals;
  const name = command === "logs" ? "follow" : "file";
  try {
    return parseArgs({ ...common, options: { ...options, [name]: { ...commandFlags[name], short: "f" } } });
  } catch (error) {
    // What follows is advice on how to pass a dash as a word.
    const [why = ""] = (error instanceof Error ? error.message : String(error)).split(/\.\s/);
    const help = startedAs({ state: { dir: "", isDefault: true }, where: [], environment })("help");
    throw new GatewayError("invalid_request", `${why}; \`${help}\` lists what there is`, { cause: error });
  }
}

/** Switches may stand without a value: `--write-back`. */
function withValue(arg: string, index: number, args: readonly string[]): string {
  const isBare = arg === `--${settingTable.writesBack.flag}` && !/^(?:true|false)$/.test(args[index + 1] ?? "");
  return isBare ? `${arg}=true` : arg;
}

function build(textOf: (row: SettingRow) => string | undefined, environment: Environment, command: string): Settings {
  const rows = Object.entries(settingTable).map(([name, row]) => [name, row.read(textOf(row))]);
  const { hubMirrorKeyFile, ...values } = Object.fromEntries(rows) as SettingValues;
  const hubTokenPath = hubTokenFile(values.hubTokenFile, environment);
  const { host, port, nativePrefix, compatPrefix } = values;
  const problem = prefixProblem({ nativePrefix, compatPrefix });
  if (problem !== null) {
    const both = `${settingTable.nativePrefix.name} ${nativePrefix} and ${settingTable.compatPrefix.name} ${compatPrefix}`;
    throw new GatewayError("invalid_request", `${both} do not go together: ${problem}`);
  }
  const standardDir = defaultStateDir(environment);
  const stateDir = resolve(values.stateDir ?? standardDir);
  if (values.writesBack && values.writes === "file")
    throw new GatewayError(
      "invalid_request",
      `${settingTable.writesBack.name} true and ${settingTable.writes.name} file do not go together: calls change nothing that could be written back`,
    );
  return {
    ...values,
    stateDir,
    configPath: resolve(values.configPath ?? join(stateDir, "gateway.yaml")),
    isAddressGiven: (textOf(settingTable.host) ?? textOf(settingTable.port)) !== undefined && port !== 0,
    cacheDir: modelCacheDir(environment),
    hubEndpoint: hubEndpoint(environment),
    hubToken: hubTokenPath === null ? environment["HF_TOKEN"]?.trim() || undefined : secretIn(hubTokenPath, tokenName),
    hubTokenPath,
    hubMirrorKey: hubMirrorKeyFile === undefined ? undefined : secretIn(hubMirrorKeyFile, "the mirror's license key"),
    licenseKey: licenseKey(values.licenseKeyFile, environment),
    command: startedAs({
      state: { dir: stateDir, isDefault: stateDir === standardDir },
      // Port 0 is another one each time.
      where: [
        ...(host === settingTable.host.default ? [] : ["--host", host]),
        ...(String(port) === settingTable.port.default || port === 0 ? [] : ["--port", String(port)]),
      ],
      environment,
    }),
    userAgent: `model-gateway/${version} ${command}`.trimEnd(),
    environment,
  };
}

/** As help and docs list them. */
export const settingRows: readonly SettingRow[] = Object.values(settingTable);

/** A checkout is started by its file; a package manager's link has the program's name, and lies in PATH or not. */
function startedAs({
  environment,
  ...rest
}: Pick<Parameters<typeof ownCommand>[0], "state" | "where"> & { readonly environment: Environment }): OwnCommand {
  const started = process.argv[1] ?? "";
  const isLinked = basename(started) === "model-gateway";
  const folders = (environment["PATH"] ?? "").split(delimiter);
  return ownCommand({
    ...rest,
    script: isLinked ? started : join(packageRoot, "dist", "program", "cli.js"),
    isOnPath: isLinked && folders.includes(dirname(started)),
    isNpmStart: environment["npm_lifecycle_event"] === "start",
    workingDir: process.cwd(),
  });
}

/** The folder that holds package.json, above dist/program of a build and dist/src of the tests. */
export const packageRoot = packageAbove(dirname(fileURLToPath(import.meta.url)));

function packageAbove(folder: string): string {
  return existsSync(join(folder, "package.json")) ? folder : packageAbove(dirname(folder));
}

export const version = (JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as { version: string })
  .version;

function defaultStateDir(environment: Environment): string {
  if (!packageRoot.split(sep).includes("node_modules")) return join(packageRoot, "state");
  if (process.platform === "darwin") return join(home(environment), "Library", "Application Support", "model-gateway");
  if (process.platform === "win32") return join(environment["LOCALAPPDATA"] || home(environment), "model-gateway");
  return join(environment["XDG_STATE_HOME"] || join(home(environment), ".local", "state"), "model-gateway");
}
