// Settings that other programs share: the hub's and those of its cache, found as llama.cpp and the hub's own tools find them.
import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import { GatewayError } from "../core/errors.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** They have no flags. */
export const sharedVariables = [
  { variable: "GATEWAY_ENGINE_SOURCE", fallback: "release, then debian", meaning: "Where engines are installed from." },
  {
    variable: "GATEWAY_LICENSE_KEY",
    fallback: "none",
    meaning: "A license key, beside those of STATE/license-keys.json; commands that ask a gateway present it.",
  },
  { variable: "HTTPS_PROXY, HTTP_PROXY, NO_PROXY", fallback: "none", meaning: "A proxy on the way to the hub." },
  { variable: "HF_ENDPOINT", fallback: "https://huggingface.co", meaning: "The model hub." },
  {
    variable: "HF_TOKEN_PATH, HF_TOKEN",
    fallback: "HF_HOME/token",
    meaning: "File with the access token for gated and private repositories, or the token; sent to the hub only.",
  },
  {
    variable: "LLAMA_CACHE, HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME",
    fallback: "~/.cache/huggingface/hub",
    meaning: "Where the model cache is, the first one set: found as llama.cpp finds it.",
  },
] as const;

/** The address stays out of the message: it may carry a password. */
export function hubEndpoint(environment: Environment): string {
  const text = environment["HF_ENDPOINT"] || "https://huggingface.co";
  const url = URL.canParse(text) ? new URL(text) : null;
  if (url?.protocol === "https:" || url?.protocol === "http:") return text.replace(/\/+$/, "");
  throw new GatewayError("invalid_request", "HF_ENDPOINT must be an http or https address");
}

/** The first that is set wins, as llama.cpp's own code has it. */
export function modelCacheDir(environment: Environment): string {
  for (const variable of ["LLAMA_CACHE", "HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"]) {
    if (environment[variable]) return resolve(environment[variable]);
  }
  return join(hubHome(environment), "hub");
}

function hubHome(environment: Environment): string {
  if (environment["HF_HOME"]) return resolve(environment["HF_HOME"]);
  return resolve(environment["XDG_CACHE_HOME"] || join(home(environment), ".cache"), "huggingface");
}

export const tokenName = "the hub's token";

/** null: there is none, or `HF_TOKEN` has the token itself. `file`: of the flag. */
export function hubTokenFile(file: string | undefined, environment: Environment): string | null {
  if (file !== undefined) return resolve(file);
  if (environment["HF_TOKEN"]?.trim()) return null;
  const path = resolve(environment["HF_TOKEN_PATH"] || join(hubHome(environment), "token"));
  return existsSync(path) ? path : null;
}

/** undefined: the file is empty. `what` the file holds, for the error: `invalid_request`. */
export function secretIn(file: string, what: string): string | undefined {
  const path = resolve(file);
  try {
    return readFileSync(path, "utf8").trim() || undefined;
  } catch (error) {
    throw new GatewayError("invalid_request", `the file ${path} of ${what} cannot be read`, { cause: error });
  }
}

/** Of the file, else of the environment. Errors: `invalid_request`, also for an empty file: without a key the gateway is open. */
export function licenseKey(file: string | undefined, environment: Environment): string | undefined {
  if (file === undefined) return environment["GATEWAY_LICENSE_KEY"]?.trim() || undefined;
  const key = secretIn(file, "the license key");
  if (key !== undefined) return key;
  throw new GatewayError("invalid_request", `the file ${resolve(file)} of the license key is empty`);
}

/** HOME before the account's folder, as llama.cpp has it. */
export function home(environment: Environment): string {
  return environment["HOME"] || homedir();
}
