// Responses of a hub, broken transfers and failed writes as GatewayErrors.
// Messages may be shown to clients: they never hold a token, and a signed address of the hub's storage never gets in.
import { GatewayError, systemCode, toGatewayError } from "../core/errors.ts";
import { isJsonObject, parseJson } from "../core/json.ts";

export interface RefusedAnswer {
  readonly status: number;
  header(name: string): string | undefined;
  /** The first bytes of the body. */
  readonly body: string;
  /** The subject of the request for messages: `acme/demo`, `acme/demo at main`, `demo.gguf of acme/demo`. */
  readonly what: string;
  /** False for a response of the storage that the hub redirects to: its refusals are not about our rights. */
  readonly fromHub: boolean;
  readonly tokenSent: boolean;
  readonly token: string | undefined;
}

/** `X-Error-Code` of a gateway for what it does not have yet. */
export const stillPulling = "StillPulling";

/** Any response that is neither a success nor a redirect. */
export function answerError(answer: RefusedAnswer): GatewayError {
  const { status, what, tokenSent, token } = answer;
  const code = answer.header("x-error-code");
  const said = `${status}${code ? ` ${clean(code, token)}` : ""}${hubWords(answer)}`;
  const told = `(${said}; ${tokenSent ? "a token was sent" : "no token was sent"})`;
  const wait = retryAfter(answer);
  // Only another gateway has this code.
  if (code === stillPulling) return new GatewayError("mirror_busy", `the mirror is still pulling ${what} itself`, wait);
  if (!answer.fromHub)
    return new GatewayError("hub_unreachable", `the hub's storage refused ${what} (${status})`, wait);
  if (status === 429) {
    const howLong = wait.retryAfterMs === undefined ? "" : ` ${Math.ceil(wait.retryAfterMs / 1000)} s`;
    const message = `the hub asks to wait${howLong} before the next request for ${what} ${told}`;
    return new GatewayError("hub_rate_limited", message, wait);
  }
  // The hub responds 401 for a repository that does not exist, to hide which private ones do.
  if (status === 404 || (status === 401 && code === "RepoNotFound"))
    return new GatewayError("hub_not_found", `the hub does not have ${what}, or does not show it ${told}`);
  if (status === 401 || status === 403)
    return new GatewayError("hub_denied", `the hub refused ${what}: ${cureOf(code, tokenSent)} ${told}`);
  return new GatewayError("hub_unreachable", `the hub could not provide ${what} (${said})`, wait);
}

function cureOf(code: string | undefined, tokenSent: boolean): string {
  if (code !== "GatedRepo") return "it does not exist, is private, or needs a token in HF_TOKEN that may read it";
  if (tokenSent) return "the owner of the token in HF_TOKEN must accept its terms on the hub";
  return "accept its terms on the hub, and set HF_TOKEN to a token of the account that did";
}

/** A request or body that broke off; `cancelled` if our own signal aborted it. */
export function transferError(error: unknown, what: string, signal: AbortSignal | undefined): GatewayError {
  if (signal?.aborted) return cancelled(what);
  if (error instanceof GatewayError) return error;
  const how = unreached.get(systemCode(error) ?? "");
  const message =
    how === undefined
      ? `the connection to the hub broke while reading ${what}: ${reasonOf(error)}`
      : `cannot reach the hub (${placeOf(error) ?? "its address"} ${how}`;
  return new GatewayError("hub_unreachable", message, { cause: error });
}

/** Reasons why no connection is made. */
const unreached: ReadonlyMap<string, string> = new Map([
  ["ENOTFOUND", "does not resolve); is this machine online?"],
  ["EAI_AGAIN", "does not resolve); is this machine online?"],
  ["EHOSTUNREACH", "has no route); is this machine online?"],
  ["ENETUNREACH", "has no route); is this machine online?"],
  ["UND_ERR_CONNECT_TIMEOUT", "does not answer); is this machine online?"],
  ["ECONNREFUSED", "refuses connections)"],
]);

/** The name or address that a system's error is about. */
function placeOf(error: unknown): string | undefined {
  if (!isJsonObject(error)) return undefined;
  const { hostname, address, port, errors } = error;
  if (typeof hostname === "string") return hostname;
  if (typeof address === "string") return typeof port === "number" ? `${address}:${port}` : address;
  return Array.isArray(errors) ? placeOf(errors[0]) : undefined;
}

/** Whether the signal is the gateway's shutdown, and not a cancellation. */
export function isStopping(signal: AbortSignal): boolean {
  return signal.aborted && signal.reason instanceof GatewayError && signal.reason.code === "shutting_down";
}

export function cancelled(what: string): GatewayError {
  return new GatewayError("cancelled", `the pull of ${what} was cancelled`);
}

/** A failed write of `what`. */
export function cacheError(error: unknown, what: string): GatewayError {
  if (error instanceof GatewayError) return error;
  const code = systemCode(error);
  if (code === "ENOSPC" || code === "EDQUOT")
    return new GatewayError("disk_full", `no disk space left in the model cache for ${what} (${code})`, {
      cause: error,
    });
  if (code === undefined) return toGatewayError(error);
  return new GatewayError("cache_unwritable", `the model cache cannot store ${what} (${code})`, { cause: error });
}

/** The outcome of work in the model cache; its failure as {@link cacheError}. */
export async function orCacheError<T>(what: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw cacheError(error, what);
  }
}

/** `"api";r=0;t=55` names the seconds until the window is over; older answers have Retry-After in seconds or as a date. */
function retryAfter(answer: RefusedAnswer): { retryAfterMs?: number } {
  const asked = askedWait(answer);
  return asked === undefined ? {} : { retryAfterMs: Math.min(asked, longestWaitMs) };
}

/** A date in the year 9999 held a pull until then. After an hour the hub is tried again. */
const longestWaitMs = 3_600_000;

function askedWait({ status, header }: RefusedAnswer): number | undefined {
  const limit = header("ratelimit") ?? "";
  const left = /;\s*r=(\d+)/.exec(limit)?.[1];
  const window = /;\s*t=(\d+)/.exec(limit)?.[1];
  if (window !== undefined && (status === 429 || left === "0")) return Number(window) * 1000;
  const after = header("retry-after");
  if (after === undefined) return undefined;
  if (/^\d+$/.test(after)) return Number(after) * 1000;
  const date = Date.parse(after);
  return Number.isNaN(date) ? undefined : Math.max(0, date - Date.now());
}

function hubWords({ header, body, token }: RefusedAnswer): string {
  const parsed = parseJson(body);
  const words = header("x-error-message") ?? (isJsonObject(parsed) ? parsed["error"] : undefined);
  // A page of a proxy or of another server has none: the status says enough.
  return typeof words === "string" && words !== "" ? `: ${clean(words, token)}` : "";
}

/**
 * Redacted before it is cut: the cut went through a token that a hub echoed, and all but its last character was shown.
 * The body may have been cut within it before, so its beginning is enough.
 */
function clean(text: string, token: string | undefined): string {
  const flat = text.replace(/\s+/g, " ").trim();
  const bare = token ? flat.split(token).join("***").split(token.slice(0, tellingLength)) : [flat];
  return [bare[0], ...bare.slice(1).map((rest) => `***${rest.replace(/^[\w.~+/=-]*/, "")}`)].join("").slice(0, 200);
}

/** A token's first characters say whose it is not; that many of them are taken for it. */
const tellingLength = 8;

function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  // An AggregateError of several addresses has no message of its own.
  return error.message || systemCode(error) || error.name;
}
