// CORS headers for pages of other origins: only those of the allow-list, never `*`, never credentials.
// Pure.
import type { IncomingHttpHeaders } from "node:http";

/** What a page may read of an answer beyond its body. */
const exposed = "x-context-size, x-should-retry, etag, retry-after";

const methods = "GET, HEAD, POST, PUT, PATCH, DELETE";

/** Seconds that a browser remembers a preflight's answer. */
const preflightAge = 600;

/** For every answer. Without an allow-list there are none. */
export function corsHeaders(origin: string | undefined, allowed: readonly string[]): Record<string, string> {
  if (allowed.length === 0) return {};
  // Also where the origin is not allowed, or none: a cache must not give one page's answer to another.
  const vary = { vary: "Origin" };
  if (origin === undefined || !allowed.includes(origin)) return vary;
  return { ...vary, "access-control-allow-origin": origin, "access-control-expose-headers": exposed };
}

/** For a preflight of an allowed origin; null for any other request. */
export function preflightHeaders(
  method: string,
  headers: IncomingHttpHeaders,
  allowed: readonly string[],
): Record<string, string> | null {
  const { origin } = headers;
  if (method !== "OPTIONS" || headers["access-control-request-method"] === undefined) return null;
  if (origin === undefined || !allowed.includes(origin)) return null;
  const asked = headers["access-control-request-headers"] ?? "";
  return {
    "access-control-allow-methods": methods,
    // SDKs send headers of their own (x-stainless-…, anthropic-version): those that are asked for are allowed.
    ...(/^[\w\-!#$%&'*+.^`|~, \t]{1,2000}$/.test(asked) ? { "access-control-allow-headers": asked } : {}),
    // A page of a public address that calls one of this network asks this too.
    ...(headers["access-control-request-private-network"] === "true"
      ? { "access-control-allow-private-network": "true" }
      : {}),
    "access-control-max-age": String(preflightAge),
    vary: "Origin, Access-Control-Request-Headers",
  };
}
