// The parts of undici that send requests. Its index also loads fetch, cookies, WebSockets, caches and mocks, and makes Node load
// its own copy of all that: each start paid 9 MB and 60 ms of processor time.
// `fetch` comes from the index, at its first call. Paths may change in a minor version, so package.json permits patches only.
import { createRequire } from "node:module";
import type * as Undici from "undici";

const require = createRequire(import.meta.url);

function part<Name extends keyof typeof Undici>(path: string): (typeof Undici)[Name] {
  return require(`undici/lib/${path}.js`) as (typeof Undici)[Name];
}

export const Agent = part<"Agent">("dispatcher/agent");
export const EnvHttpProxyAgent = part<"EnvHttpProxyAgent">("dispatcher/env-http-proxy-agent");
export const errors = part<"errors">("core/errors");

// As the index does.
Object.assign(part<"Dispatcher">("dispatcher/dispatcher").prototype, require("undici/lib/api/index.js"));

export const fetch: typeof Undici.fetch = async (...input) => {
  // By `default`: the only sure name of a package in CommonJS.
  const { default: undici } = await import("undici");
  return undici.fetch(...input);
};

const shared = new Agent();

type RequestOptions = Omit<Undici.Dispatcher.RequestOptions, "origin" | "path" | "method"> & {
  readonly dispatcher?: Undici.Dispatcher;
  readonly method?: Undici.Dispatcher.HttpMethod;
};

export function request(url: string | URL, options: RequestOptions = {}): Promise<Undici.Dispatcher.ResponseData> {
  const { dispatcher = shared, method = "GET", ...rest } = options;
  const { origin, pathname, search } = new URL(url);
  return dispatcher.request({ ...rest, origin, path: pathname + search, method });
}
