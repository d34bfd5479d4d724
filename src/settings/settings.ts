// Everything that is set from outside: flags and environment, read once, here and nowhere else.
import { readFileSync } from "node:fs";
import { basename, delimiter, dirname, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { ChatContextMode } from "../commands/chat-context.ts";
import { GatewayError } from "../core/errors.ts";
import { parseKeepAlive } from "../core/keep-alive.ts";
import { type OwnCommand, ownCommand } from "../core/own-command.ts";
import { type PresetAllow, presetAllowProblem } from "../core/preset-keys.ts";
import type { SpeechEngineChoice } from "../engines/speech/synthesis-engine.ts";
import { type ChosenPrefixes, prefixProblem } from "../http/server/prefixes.ts";
import { type LimitSettings, readLimits } from "./limits.ts";
import { home, hubEndpoint, hubToken, modelCacheDir } from "./shared.ts";
import { settingRows } from "./table.ts";
import { type Environment, type Flag, fallbackOf, type SettingText, settingValues, spelt } from "./values.ts";

export interface Settings extends LimitSettings {
  readonly host: string;
  readonly port: number;
  /** Whether somebody says where the gateway listens: commands ask there, else where the state folder's lock says. */
  readonly isAddressGiven: boolean;
  readonly stateDir: string;
  readonly configPath: string;
  readonly cacheDir: string;
  readonly hubEndpoint: string;
  readonly hubToken: string | undefined;
  /** Options of the engine that the document's `preset` may set, besides those on the list. */
  readonly presetAllow: PresetAllow;
  readonly llamaServer: string | undefined;
  readonly installEngine: boolean;
  readonly modelsMax: number;
  /** Requests per model, waiting and under way. */
  readonly queueLimit: number;
  readonly transfers: number;
  readonly resyncMs: number;
  readonly drainMs: number;
  readonly loadTimeoutMs: number;
  readonly startTimeoutMs: number;
  readonly stopGraceMs: number;
  readonly silenceLimitMs: number;
  readonly waitTimeoutMs: number;
  readonly allowedHosts: readonly string[];
  /** Origins whose pages may call the gateway, `https://HOST[:PORT]`. */
  readonly corsOrigins: readonly string[];
  /** A single license key from the environment. */
  readonly licenseKey: string | undefined;
  /** Where the family compatible with Ollama's API is served, without a trailing slash. */
  readonly nativePrefix: string;
  /** Where the family compatible with OpenAI's API is served, without a trailing slash. */
  readonly compatPrefix: string;
  /** What a chat that carries a context size may do. */
  readonly chatContext: ChatContextMode;
  /** ms that an idle model stays loaded where no request says; null: until its place is needed. */
  readonly keepAliveMs: number | null;
  readonly whisperServer: string | undefined;
  readonly speechEngine: SpeechEngineChoice;
  /** A Python, or a `piper` command. */
  readonly piper: string | undefined;
  readonly speechIdleMs: number;
  readonly uploadStallMs: number;
  readonly uploadTimeMs: number;
  /** ms between two looks at an RPC worker. */
  readonly workerIntervalMs: number;
  /** ms that a lost RPC worker has to answer before it is used again. */
  readonly workerStableMs: number;
  /** ms that a model on RPC workers may compute without a sign of life. */
  readonly workerStallMs: number;
  readonly rpcServer: string | undefined;
  readonly logLevel: string;
  /** For messages that name a command of ours. */
  readonly command: OwnCommand;
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
  /** `key create --expires`, as given. */
  readonly expires: string | undefined;
  /** `key create --scope`, as given. */
  readonly scope: string | undefined;
  /** Flags that mean something else to `worker`, as given. */
  readonly worker: Readonly<Partial<Record<"host" | "port" | "threads", string>>>;
}

/** Errors: `invalid_request` for an unknown flag or a value that is none. */
export function readSettings(args: readonly string[], environment: Environment = { ...process.env }): CommandLine {
  const options = Object.fromEntries(settingRows.map(({ flag }) => [flag, { type: "string" as const }]));
  let parsed: ReturnType<typeof parseArgs>;
  try {
    parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        ...options,
        expires: { type: "string" },
        scope: { type: "string" },
        threads: { type: "string" },
        json: { type: "boolean" },
        yes: { type: "boolean" },
        force: { type: "boolean" },
        help: { type: "boolean", short: "h" },
        version: { type: "boolean", short: "v" },
      },
    });
  } catch (error) {
    // What follows is advice on how to pass a dash as a word.
    const [why = ""] = (error instanceof Error ? error.message : String(error)).split(". ");
    const help = startedAs({ state: { dir: "", isDefault: true }, where: [], environment })("help");
    throw new GatewayError("invalid_request", `${why}; \`${help}\` lists what there is`, { cause: error });
  }
  const [command = parsed.values["version"] === true ? "version" : "", ...operands] = parsed.positionals;
  const text = (flag: Flag): string | undefined => {
    const given = parsed.values[flag];
    if (typeof given === "string") return given;
    const variable = settingRows.find((row) => row.flag === flag)?.variable ?? "";
    return environment[variable] === "" ? undefined : environment[variable];
  };
  const given = (flag: string): string | undefined => {
    const value = parsed.values[flag];
    return typeof value === "string" ? value : undefined;
  };
  return {
    command,
    operands,
    flags: Object.keys(parsed.values),
    settings: build(text, environment),
    json: parsed.values["json"] === true,
    yes: parsed.values["yes"] === true,
    force: parsed.values["force"] === true,
    help: parsed.values["help"] === true,
    expires: given("expires"),
    scope: given("scope"),
    worker: workerFlags(given),
  };
}

function workerFlags(given: (flag: string) => string | undefined): CommandLine["worker"] {
  const entries = ["host", "port", "threads"].flatMap((flag) => {
    const value = given(flag);
    return value === undefined ? [] : [[flag, value]];
  });
  return Object.fromEntries(entries) as CommandLine["worker"];
}

function build(text: SettingText, environment: Environment): Settings {
  const values = settingValues(text);
  const { whole, ms, oneOf } = values;
  const stateDir = resolve(text("state") ?? defaultStateDir(environment));
  const host = text("host") ?? fallbackOf("host");
  const port = whole("port", 0);
  if (port > 65_535) throw new GatewayError("invalid_request", `${spelt("port")} must be at most 65535, not ${port}`);
  return {
    host,
    port,
    isAddressGiven: (text("host") ?? text("port")) !== undefined && port !== 0,
    stateDir,
    configPath: resolve(text("config") ?? join(stateDir, "gateway.yaml")),
    cacheDir: modelCacheDir(environment),
    hubEndpoint: hubEndpoint(environment),
    hubToken: hubToken(text("hub-token-file"), environment),
    presetAllow: presetAllowOf(text("preset-allow")),
    llamaServer: text("llama-server"),
    installEngine: oneOf("install-engine", ["true", "false"]) === "true",
    modelsMax: whole("models-max", 1),
    queueLimit: whole("queue-limit", 1),
    transfers: whole("transfers", 1),
    resyncMs: Math.max(100, ms("resync")),
    drainMs: ms("drain-timeout"),
    loadTimeoutMs: ms("load-timeout"),
    startTimeoutMs: ms("start-timeout"),
    stopGraceMs: ms("stop-grace"),
    silenceLimitMs: ms("silence-limit"),
    waitTimeoutMs: ms("wait-timeout"),
    ...readLimits(values),
    allowedHosts: listOf(text("allow-host")),
    corsOrigins: listOf(text("cors-origin")).map((origin) => originOf(origin)),
    licenseKey: environment["GATEWAY_LICENSE_KEY"]?.trim() || undefined,
    ...prefixesOf(text),
    chatContext: oneOf("chat-context", ["apply", "grow", "ignore"]) as ChatContextMode,
    keepAliveMs: keepAliveOf(text("keep-alive")),
    whisperServer: text("whisper-server"),
    speechEngine: oneOf("speech-engine", ["auto", "piper", "embedded"]) as SpeechEngineChoice,
    piper: text("piper"),
    speechIdleMs: ms("speech-idle"),
    uploadStallMs: Math.max(100, ms("upload-stall")),
    uploadTimeMs: ms("upload-time"),
    workerIntervalMs: Math.max(50, ms("worker-interval")),
    workerStableMs: ms("worker-stable"),
    workerStallMs: Math.max(100, ms("worker-stall")),
    rpcServer: text("rpc-server"),
    logLevel: oneOf("log-level", ["trace", "debug", "info", "warn", "error", "silent"]),
    command: startedAs({
      state: { dir: stateDir, isDefault: stateDir === defaultStateDir(environment) },
      // Port 0 is another one each time.
      where: [
        ...(host === fallbackOf("host") ? [] : ["--host", host]),
        ...(String(port) === fallbackOf("port") || port === 0 ? [] : ["--port", String(port)]),
      ],
      environment,
    }),
    environment,
  };
}

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
    script: isLinked ? started : join(packageRoot, "dist", "src", "cli.js"),
    isOnPath: isLinked && folders.includes(dirname(started)),
    isNpmStart: environment["npm_lifecycle_event"] === "start",
    workingDir: process.cwd(),
  });
}

function listOf(text: string | undefined): string[] {
  return (text ?? "")
    .split(",")
    .map((entry) => entry.trim().toLowerCase())
    .filter((entry) => entry !== "");
}

function presetAllowOf(text: string | undefined): PresetAllow {
  const keys = listOf(text);
  for (const key of keys) {
    const problem = presetAllowProblem(key);
    if (problem !== null)
      throw new GatewayError("invalid_request", `${spelt("preset-allow")} cannot allow ${key}: ${problem}`);
  }
  return new Set(keys);
}

function originOf(text: string): string {
  const bare = text.replace(/\/$/, "");
  const url = URL.canParse(bare) ? new URL(bare) : null;
  // URL knows no origin of a browser extension's scheme; browsers send one.
  if (url && (url.origin === bare || (url.origin === "null" && /^[a-z][a-z0-9+.-]*:\/\/[\w.-]+$/.test(bare))))
    return bare;
  throw new GatewayError("invalid_request", `${spelt("cors-origin")} must list origins such as https://chat.example`);
}

function prefixesOf(text: SettingText): ChosenPrefixes {
  const nativePrefix = prefixOf("native-prefix", text("native-prefix"));
  const compatPrefix = prefixOf("compat-prefix", text("compat-prefix"));
  const problem = prefixProblem({ nativePrefix, compatPrefix });
  if (problem === null) return { nativePrefix, compatPrefix };
  throw new GatewayError(
    "invalid_request",
    `${spelt("native-prefix")} ${nativePrefix} and ${spelt("compat-prefix")} ${compatPrefix} do not go together: ${problem}`,
  );
}

function prefixOf(flag: "native-prefix" | "compat-prefix", given: string | undefined): string {
  const text = (given ?? fallbackOf(flag)).replace(/\/+$/, "");
  // Clients take dots for folders and leave them out.
  if (/^(?:\/(?!\.{1,2}(?:\/|$))[\w.-]+)+$/.test(text)) return text;
  throw new GatewayError(
    "invalid_request",
    `${spelt(flag)} must be a path such as ${fallbackOf(flag)}, not ${JSON.stringify(given)}`,
  );
}

function keepAliveOf(given: string | undefined): number | null {
  const text = given ?? fallbackOf("keep-alive");
  const keepAlive = parseKeepAlive(/^-?[\d.]+$/.test(text) ? Number(text) : text);
  if (keepAlive === null || keepAlive.kind === "default")
    throw new GatewayError(
      "invalid_request",
      `${spelt("keep-alive")} must be seconds, a duration such as 5m, 0, or -1 for ever, not ${JSON.stringify(text)}`,
    );
  return keepAlive.kind === "forever" ? null : keepAlive.seconds * 1000;
}

/** The folder that holds package.json: above dist/src/settings/settings.js. */
export const packageRoot = resolve(dirname(fileURLToPath(import.meta.url)), "..", "..", "..");

export const version = (JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as { version: string })
  .version;

function defaultStateDir(environment: Environment): string {
  if (!packageRoot.split(sep).includes("node_modules")) return join(packageRoot, "state");
  if (process.platform === "darwin") return join(home(environment), "Library", "Application Support", "model-gateway");
  if (process.platform === "win32") return join(environment["LOCALAPPDATA"] || home(environment), "model-gateway");
  return join(environment["XDG_STATE_HOME"] || join(home(environment), ".local", "state"), "model-gateway");
}
