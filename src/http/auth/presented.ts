// The keys that a request presents: in a header, or in its address before the path. An address loses its key here, before
// anything else reads it, so that it gets into no log and no message.
import type { IncomingMessage } from "node:http";

const keysInAddresses = new WeakMap<object, string>();

/** A request as Fastify hands it to `rewriteUrl`: it has kept the address as it came. */
interface Rewritable {
  readonly url?: string | undefined;
  originalUrl?: string;
}

/** Takes `/k/KEY` off a request's address and remembers the key for the hooks. */
export function rewriteKeyedUrl(request: Rewritable): string {
  const { key, url } = splitKeyedUrl(request.url ?? "/");
  if (key !== null) keysInAddresses.set(request, key);
  request.originalUrl = url;
  return url;
}

/** Nothing in it is decoded, and no key is before its path. */
const isPlain = /^\/(?:[^/k%?#][^%?#]*)?$/;

/**
 * `/k/KEY/v1/models?a` → `KEY` and `/v1/models?a`; the key may be percent-encoded. Of several, one before the other, the
 * first counts and none stays: what is left gets into messages. The address comes out in the form that routes are found by: one that cannot be decoded would be answered by the framework, past every hook.
 */
export function splitKeyedUrl(address: string): { readonly key: string | null; readonly url: string } {
  if (isPlain.test(address)) return { key: null, url: address };
  const [, path = "", rest = ""] = /^([^?#]*)(.*)$/s.exec(address) ?? [];
  // Addresses are put together by hand: http://HOST/ and /k/KEY/ make //k/KEY.
  const [, key, below] = /^\/+k\/+([^/]+)(?:\/+k\/+[^/]+)*(.*)$/s.exec(path) ?? [];
  const plain = decodable(key === undefined ? path : (below ?? ""));
  return { key: key === undefined ? null : (decoded(key) ?? key), url: `${plain === "" ? "/" : plain}${rest}` };
}

function decodable(path: string): string {
  return !path.includes("%") || decoded(path) !== null ? path : path.replaceAll("%", "%25");
}

function decoded(text: string): string | null {
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}

/** Every key that the request carries: a client that must send some key sends a made-up one beside that of its address. */
export function presentedKeys(request: IncomingMessage): string[] {
  const { authorization, "x-license-key": license, "x-api-key": api } = request.headers;
  const keys: string[] = [];
  const add = (key: string | string[] | undefined): void => {
    if (typeof key === "string" && key !== "") keys.push(key);
  };
  add(keysInAddresses.get(request));
  if (authorization !== undefined) add(/^Bearer[ \t]+(\S+)[ \t]*$/i.exec(authorization)?.[1]);
  add(license);
  add(api);
  return keys;
}
