// GET requests to a hub: redirects by hand, the token for the hub's own origin only, errors in our own terms.
// Independent of repositories and files.
import type { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { GatewayError } from "../core/errors.ts";
import { readAtMost } from "../core/read-at-most.ts";
import { unlessLeft } from "../core/unless-left.ts";
import { Agent, EnvHttpProxyAgent, errors, request } from "../undici.ts";
import { answerError, transferError } from "./errors.ts";

/** Whether the last request reached the hub. `at` in milliseconds since the epoch, 0 for never. */
export interface Reachability {
  readonly status: "unknown" | "reachable" | "unreachable";
  readonly message: string;
  readonly at: number;
}

export interface HubHttpOptions {
  /** Base address of the hub, for instance the value of HF_ENDPOINT. */
  readonly endpoint: string;
  readonly token: string | undefined;
  /** Where HTTPS_PROXY, HTTP_PROXY and NO_PROXY are read, in either case; without it there is no proxy. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Milliseconds without a byte after which a transfer counts as broken; twice as many for other responses. */
  readonly stallMs?: number | undefined;
  /** Id of this gateway, for a hub that is a gateway. */
  readonly caller?: string | undefined;
}

export interface HubAnswer {
  readonly status: number;
  /** The final address of the response. */
  readonly url: URL;
  header(name: string): string | undefined;
  /** Headers of the hub's own response, before it redirected to its storage. */
  hubHeader(name: string): string | undefined;
  readonly body: Readable;
  /** The address without redirects, valid for a while. */
  readonly place: HubPlace;
}

/** The end of a chain of redirects. */
export interface HubPlace {
  readonly url: string;
  /** Whether the token may be sent there. */
  readonly trusted: boolean;
}

export interface HubGet {
  /** The subject of the request, for error messages. */
  readonly what: string;
  readonly signal?: AbortSignal | undefined;
  readonly headers?: Readonly<Record<string, string>>;
  /** Further statuses that are not errors. */
  readonly accept?: readonly number[];
  /** Begin there instead. */
  readonly place?: HubPlace | undefined;
}

const redirectLimit = 10;
const redirects = new Set([301, 302, 303, 307, 308]);
const ownHeaders = { "user-agent": "model-gateway", "accept-encoding": "identity" };
export const callerHeader = "x-gateway-caller";
/** Of the hub's own response, before it redirects to its storage. */
const keptHeaders = ["x-linked-etag", "x-linked-size"];

export function createHubHttp({ endpoint, token, environment = {}, stallMs = 30_000, caller }: HubHttpOptions) {
  const answerMs = 2 * stallMs;
  const hubOrigin = new URL(endpoint).origin;
  const fixedHeaders = { ...ownHeaders, ...(caller !== undefined && { [callerHeader]: caller }) };
  const dispatcher = createConnections(environment);
  let last: Reachability = { status: "unknown", message: "No request was sent to the hub yet.", at: 0 };

  function note(error: GatewayError | undefined): void {
    if (error?.code === "cancelled") return;
    last =
      error?.code === "hub_unreachable"
        ? { status: "unreachable", message: error.message, at: Date.now() }
        : { status: "reachable", message: `${hubOrigin} answers.`, at: Date.now() };
  }

  /** A slow trickle of bytes never reaches the shorter limits, so there is one for the whole response. */
  async function inTime<T>(get: HubGet, work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    const over = new AbortController();
    const timer = setTimeout(() => over.abort(), answerMs);
    try {
      const result = await work(get.signal ? AbortSignal.any([get.signal, over.signal]) : over.signal);
      note(undefined);
      return result;
    } catch (error) {
      const late = `the hub's response for ${get.what} took more than ${answerMs / 1000} s`;
      const isLate = over.signal.aborted;
      const failure = isLate ? new GatewayError("hub_unreachable", late) : transferError(error, get.what, get.signal);
      note(failure);
      throw failure;
    } finally {
      clearTimeout(timer);
    }
  }

  async function follow(start: string, get: HubGet, signal: AbortSignal): Promise<HubAnswer> {
    const { what } = get;
    let url = new URL(get.place?.url ?? start);
    let trusted = get.place?.trusted ?? url.origin === hubOrigin;
    const hubHeaders = new Map<string, string | undefined>();
    for (let hop = 0; hop <= redirectLimit; hop++) {
      const fromHub = url.origin === hubOrigin;
      const tokenSent = token !== undefined && fromHub && trusted;
      const response = await send(url, signal, {
        dispatcher,
        headers: { ...fixedHeaders, ...get.headers, ...(tokenSent && { authorization: `Bearer ${token}` }) },
        headersTimeout: stallMs,
        bodyTimeout: stallMs,
      });
      const { statusCode: status, body } = response;
      const header = headerReader(response.headers);
      if (fromHub) for (const name of keptHeaders) hubHeaders.set(name, header(name) ?? hubHeaders.get(name));
      // Without a listener a body that is left unread would end the process.
      body.on("error", (error) => {
        if (!(error instanceof errors.RequestAbortedError)) note(transferError(error, what, get.signal));
      });
      if ((status >= 200 && status < 300) || get.accept?.includes(status)) {
        const place = { url: url.href, trusted };
        return { status, url, header, hubHeader: (name) => hubHeaders.get(name), body, place };
      }
      const location = header("location");
      if (!redirects.has(status) || location === undefined)
        throw answerError({ status, header, body: await firstBytes(body, 4096), what, fromHub, tokenSent, token });
      await body.dump();
      // Only a relative redirect is surely the hub's own: an absolute one could come from elsewhere and lead back here.
      trusted &&= !URL.canParse(location) && !location.startsWith("//");
      url = redirectTarget(location, url, what);
    }
    throw new GatewayError("hub_unreachable", `the hub redirects ${what} more than ${redirectLimit} times`);
  }

  return {
    /**
     * Follows redirects; throws `hub_*` for any response but 2xx, `cancelled` when aborted. The caller limits the time of the
     * body; it fails after `stallMs` without a byte.
     */
    get: (url: string, get: HubGet): Promise<HubAnswer> => inTime(get, (signal) => follow(url, get, signal)),
    /** The same with the whole body, within a time limit. Throws `tooLong()` if it has more bytes. */
    text: (url: string, get: HubGet, limit: number, tooLong: () => GatewayError) =>
      inTime(get, async (signal) => {
        const answer = await follow(url, get, signal);
        return { answer, text: (await readAtMost(answer.body, limit, tooLong)).toString("utf8") };
      }),
    reachability: (): Reachability => last,
    /** What a client in another thread saw of the same hub. */
    noteReachability: (seen: Reachability): void => {
      if (seen.at > last.at) last = seen;
    },
    // Not close(): that would wait for a transfer without a reader.
    close: (): Promise<void> => dispatcher.destroy(),
  };
}

/**
 * Undici checks a signal only once it has a connection, and a proxy that never opens its tunnel never provides one: neither
 * a cancelled pull nor a shutdown ended such a request.
 */
async function send(url: URL, signal: AbortSignal, options: Parameters<typeof request>[1]) {
  const answer = request(url, { ...options, signal });
  try {
    return await unlessLeft(answer, signal);
  } catch (error) {
    const ignored = (): void => undefined;
    answer.then(({ body }) => body.on("error", ignored).destroy(), ignored);
    throw error;
  }
}

/** Nothing else of an environment, which has keys too. */
export function proxiesIn(environment: HubHttpOptions["environment"] = {}): Record<string, string | undefined> {
  return Object.fromEntries(Object.entries(environment).filter(([name]) => /^(https?|no)_proxy$/i.test(name)));
}

/** With the proxies that the environment names. */
export function createConnections(environment: Readonly<Record<string, string | undefined>>): Dispatcher {
  const variable = (name: string): string => environment[name.toLowerCase()] || environment[name] || "";
  const httpProxy = proxyAddress(variable("HTTP_PROXY"), "HTTP_PROXY");
  const httpsProxy = proxyAddress(variable("HTTPS_PROXY"), "HTTPS_PROXY");
  if (httpProxy === "" && httpsProxy === "") return new Agent();
  // All three are always given, as it would look for a missing one in the process's own environment.
  return new EnvHttpProxyAgent({ httpProxy, httpsProxy, noProxy: variable("NO_PROXY") });
}

/** The message has no value: it may contain a password. */
function proxyAddress(value: string, name: string): string {
  if (value === "") return "";
  const address = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value}`;
  if (URL.canParse(address) && /^https?:$/.test(new URL(address).protocol)) return address;
  throw new GatewayError("invalid_request", `${name} must be an http or https address`);
}

function redirectTarget(location: string, from: URL, what: string): URL {
  const target = URL.canParse(location, from.href) ? new URL(location, from.href) : undefined;
  if (target?.protocol === "https:" || target?.protocol === "http:") return target;
  throw new GatewayError("hub_unreachable", `the hub redirects ${what} to an invalid address`);
}

function headerReader(headers: Dispatcher.ResponseData["headers"]): (name: string) => string | undefined {
  return (name) => {
    const value = headers[name];
    return Array.isArray(value) ? value.join(", ") : value;
  };
}

/** Enough of an error's body to read its message; the rest is dropped. */
async function firstBytes(body: Readable, limit: number): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of body) {
    if (!Buffer.isBuffer(chunk)) continue;
    chunks.push(chunk);
    length += chunk.length;
    if (length >= limit) break;
  }
  return Buffer.concat(chunks).toString("utf8", 0, limit);
}
