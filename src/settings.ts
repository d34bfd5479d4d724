// Everything that is set from outside: flags and environment, read once, here and nowhere else.
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { dirname, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { GatewayError } from "./core/errors.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

export interface Settings {
  readonly host: string;
  readonly port: number;
  readonly stateDir: string;
  readonly configPath: string;
  readonly cacheDir: string;
  readonly hubEndpoint: string;
  readonly hubToken: string | undefined;
  readonly llamaServer: string | undefined;
  readonly installEngine: boolean;
  readonly modelsMax: number;
  readonly transfers: number;
  readonly resyncMs: number;
  readonly drainMs: number;
  readonly loadTimeoutMs: number;
  readonly startTimeoutMs: number;
  readonly stopGraceMs: number;
  readonly silenceLimitMs: number;
  readonly waitTimeoutMs: number;
  readonly bodyLimit: number;
  readonly allowedHosts: readonly string[];
  readonly logLevel: string;
  /** For the engines' own environment, which takes from it what it needs. */
  readonly environment: Environment;
}

interface SettingRow {
  /** Without dashes. */
  readonly flag: string;
  readonly variable: string;
  /** As the README shows it. */
  readonly fallback: string;
  readonly meaning: string;
}

/** Every setting, for the help text, the README and the reader below. */
export const settingRows = [
  {
    flag: "host",
    variable: "GATEWAY_HOST",
    fallback: "127.0.0.1",
    meaning: "Address to listen on. Loopback only in this version: there are no license keys yet.",
  },
  { flag: "port", variable: "GATEWAY_PORT", fallback: "8484", meaning: "Port to listen on; 0 takes a free one." },
  {
    flag: "state",
    variable: "GATEWAY_STATE",
    fallback: "./state",
    meaning:
      "Folder for the desired document, the preset file and the engines. A global install uses the platform's state folder.",
  },
  { flag: "config", variable: "GATEWAY_CONFIG", fallback: "STATE/gateway.yaml", meaning: "The watched document." },
  {
    flag: "llama-server",
    variable: "LLAMA_SERVER",
    fallback: "PATH, then STATE/engines",
    meaning: "The engine's executable.",
  },
  {
    flag: "install-engine",
    variable: "GATEWAY_INSTALL_ENGINE",
    fallback: "true",
    meaning: "Install the engine at the start when there is none.",
  },
  {
    flag: "models-max",
    variable: "GATEWAY_MODELS_MAX",
    fallback: "4",
    meaning: "Models loaded at once; the least recently used idle one makes room.",
  },
  { flag: "transfers", variable: "GATEWAY_TRANSFERS", fallback: "1", meaning: "Pulls at once." },
  {
    flag: "resync",
    variable: "GATEWAY_RESYNC",
    fallback: "60",
    meaning: "Seconds between two looks at the world without an occasion.",
  },
  {
    flag: "drain-timeout",
    variable: "GATEWAY_DRAIN_TIMEOUT",
    fallback: "30",
    meaning: "Seconds to wait for answers in flight before a model is unloaded.",
  },
  {
    flag: "load-timeout",
    variable: "GATEWAY_LOAD_TIMEOUT",
    fallback: "600",
    meaning: "Seconds that a model may take to load.",
  },
  {
    flag: "start-timeout",
    variable: "GATEWAY_START_TIMEOUT",
    fallback: "60",
    meaning: "Seconds that the router may take to start, and a request waits for it.",
  },
  {
    flag: "stop-grace",
    variable: "GATEWAY_STOP_GRACE",
    fallback: "10",
    meaning: "Seconds from asking a process to end to ending it.",
  },
  {
    flag: "silence-limit",
    variable: "GATEWAY_SILENCE_LIMIT",
    fallback: "20",
    meaning: "Seconds without an answer after which a running router counts as hanging and is restarted.",
  },
  {
    flag: "wait-timeout",
    variable: "GATEWAY_WAIT_TIMEOUT",
    fallback: "60",
    meaning: "Seconds that a call with ?wait=true waits.",
  },
  {
    flag: "body-limit",
    variable: "GATEWAY_BODY_LIMIT",
    fallback: "67108864",
    meaning: "Bytes that a request's body may have.",
  },
  {
    flag: "allow-host",
    variable: "GATEWAY_ALLOWED_HOSTS",
    fallback: "",
    meaning: "Further Host names to answer to, separated by commas.",
  },
  {
    flag: "log-level",
    variable: "GATEWAY_LOG_LEVEL",
    fallback: "info",
    meaning: "trace, debug, info, warn, error or silent.",
  },
] as const satisfies readonly SettingRow[];

/** Settings that other programs share; they have no flags. */
export const sharedVariables = [
  {
    variable: "GATEWAY_ENGINE_SOURCE",
    fallback: "the release, then Debian",
    meaning: "Where engines are installed from: release or debian.",
  },
  { variable: "HF_ENDPOINT", fallback: "https://huggingface.co", meaning: "The model hub." },
  {
    variable: "HF_TOKEN, HF_TOKEN_PATH",
    fallback: "HF_HOME/token",
    meaning: "Access token for gated and private repositories; sent to the hub only.",
  },
  {
    variable: "LLAMA_CACHE, HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME",
    fallback: "~/.cache/huggingface/hub",
    meaning: "Where the model cache is, the first one set: found as llama.cpp finds it.",
  },
] as const;

type Flag = (typeof settingRows)[number]["flag"];

export interface CommandLine {
  readonly command: string;
  readonly operands: readonly string[];
  readonly settings: Settings;
  readonly json: boolean;
  readonly help: boolean;
}

/** Errors: `invalid_request` for an unknown flag or a value that is none. */
export function readSettings(args: readonly string[], environment: Environment = process.env): CommandLine {
  const options = Object.fromEntries(settingRows.map(({ flag }) => [flag, { type: "string" as const }]));
  let parsed: ReturnType<typeof parseArgs>;
  try {
    parsed = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: { ...options, json: { type: "boolean" }, help: { type: "boolean", short: "h" } },
    });
  } catch (error) {
    throw new GatewayError("invalid_request", error instanceof Error ? error.message : String(error), { cause: error });
  }
  const [command = "serve", ...operands] = parsed.positionals;
  const text = (flag: Flag): string | undefined => {
    const given = parsed.values[flag];
    if (typeof given === "string") return given;
    const variable = settingRows.find((row) => row.flag === flag)?.variable ?? "";
    return environment[variable] === "" ? undefined : environment[variable];
  };
  return {
    command,
    operands,
    settings: build(text, environment),
    json: parsed.values["json"] === true,
    help: parsed.values["help"] === true,
  };
}

function build(text: (flag: Flag) => string | undefined, environment: Environment): Settings {
  const count = (flag: Flag, least: number): number => {
    const value = text(flag) ?? fallbackOf(flag);
    const number = Number(value);
    if (!Number.isFinite(number) || number < least || value.trim() === "") {
      throw new GatewayError(
        "invalid_request",
        `${spelt(flag)} must be a number from ${least}, not ${JSON.stringify(value)}`,
      );
    }
    return number;
  };
  const whole = (flag: Flag, least: number): number => {
    const number = count(flag, least);
    if (Number.isSafeInteger(number)) return number;
    throw new GatewayError("invalid_request", `${spelt(flag)} must be a whole number, not ${number}`);
  };
  // A timer that is longer goes off at once.
  const ms = (flag: Flag): number => Math.min(Math.round(count(flag, 0) * 1000), longestTimerMs);
  const oneOf = (flag: Flag, values: readonly string[]): string => {
    const value = text(flag) ?? fallbackOf(flag);
    if (values.includes(value)) return value;
    throw new GatewayError(
      "invalid_request",
      `${spelt(flag)} must be one of ${values.join(", ")}, not ${JSON.stringify(value)}`,
    );
  };
  const stateDir = resolve(text("state") ?? defaultStateDir(environment));
  const port = whole("port", 0);
  if (port > 65_535) throw new GatewayError("invalid_request", `${spelt("port")} must be at most 65535, not ${port}`);
  return {
    host: text("host") ?? fallbackOf("host"),
    port,
    stateDir,
    configPath: resolve(text("config") ?? join(stateDir, "gateway.yaml")),
    cacheDir: modelCacheDir(environment),
    hubEndpoint: hubEndpoint(environment),
    hubToken: hubToken(environment),
    llamaServer: text("llama-server"),
    installEngine: oneOf("install-engine", ["true", "false"]) === "true",
    modelsMax: whole("models-max", 1),
    transfers: whole("transfers", 1),
    resyncMs: Math.max(100, ms("resync")),
    drainMs: ms("drain-timeout"),
    loadTimeoutMs: ms("load-timeout"),
    startTimeoutMs: ms("start-timeout"),
    stopGraceMs: ms("stop-grace"),
    silenceLimitMs: ms("silence-limit"),
    waitTimeoutMs: ms("wait-timeout"),
    bodyLimit: whole("body-limit", 1024),
    allowedHosts: (text("allow-host") ?? "")
      .split(",")
      .map((host) => host.trim().toLowerCase())
      .filter((host) => host !== ""),
    logLevel: oneOf("log-level", ["trace", "debug", "info", "warn", "error", "silent"]),
    environment,
  };
}

const longestTimerMs = 2 ** 31 - 1;

/** Both spellings, as it is not known here which of them was used. */
function spelt(flag: Flag): string {
  return `--${flag} (${settingRows.find((row) => row.flag === flag)?.variable ?? ""})`;
}

/** The address stays out of the message: it may carry a password. */
function hubEndpoint(environment: Environment): string {
  const text = environment["HF_ENDPOINT"] || "https://huggingface.co";
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol === "https:" || url?.protocol === "http:") return text.replace(/\/+$/, "");
  throw new GatewayError("invalid_request", "HF_ENDPOINT must be an http or https address");
}

function fallbackOf(flag: Flag): string {
  return settingRows.find((row) => row.flag === flag)?.fallback ?? "";
}

/** The first that is set wins, as llama.cpp's own code has it. */
function modelCacheDir(environment: Environment): string {
  for (const variable of ["LLAMA_CACHE", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"]) {
    if (environment[variable]) return resolve(environment[variable]);
  }
  return join(hubHome(environment), "hub");
}

function hubHome(environment: Environment): string {
  if (environment["HF_HOME"]) return resolve(environment["HF_HOME"]);
  return resolve(environment["XDG_CACHE_HOME"] || join(home(environment), ".cache"), "huggingface");
}

function hubToken(environment: Environment): string | undefined {
  const direct = environment["HF_TOKEN"]?.trim();
  if (direct) return direct;
  const path = environment["HF_TOKEN_PATH"] || join(hubHome(environment), "token");
  if (!existsSync(path)) return undefined;
  try {
    return readFileSync(path, "utf8").trim() || undefined;
  } catch (error) {
    throw new GatewayError("invalid_request", `the hub token's file ${path} cannot be read`, { cause: error });
  }
}

/** HOME before the account's folder, as llama.cpp has it. */
function home(environment: Environment): string {
  return environment["HOME"] || homedir();
}

/** The folder that holds package.json: three levels above dist/src/settings.js. */
export const packageRoot = resolve(dirname(fileURLToPath(import.meta.url)), "..", "..");

export const version = (JSON.parse(readFileSync(join(packageRoot, "package.json"), "utf8")) as { version: string })
  .version;

function defaultStateDir(environment: Environment): string {
  if (!packageRoot.split(sep).includes("node_modules")) return join(packageRoot, "state");
  if (process.platform === "darwin") return join(home(environment), "Library", "Application Support", "model-gateway");
  if (process.platform === "win32") return join(environment["LOCALAPPDATA"] || home(environment), "model-gateway");
  return join(environment["XDG_STATE_HOME"] || join(home(environment), ".local", "state"), "model-gateway");
}
