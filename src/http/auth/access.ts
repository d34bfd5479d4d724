// Who may come in: Host and Origin, license keys and their scope, and what a client without a key may read. In this order,
// before a body is read, a route's handler runs or a model is looked up.
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import type { FastifyInstance, FastifyRequest } from "fastify";
import { GatewayError } from "../../core/errors.ts";
import type { KeyScope } from "../../keys/key-list.ts";
import type { LicenseKeys } from "../../keys/license-keys.ts";
import { createNetworks, type Network } from "../../settings/networks.ts";
import { corsHeaders, preflightHeaders } from "./cors.ts";
import { isAddress, isAllowedHost, isAllowedOrigin } from "./guards.ts";
import { presentedKeys } from "./presented.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /**
     * Without a key: `none` answers as always, `short` answers what anyone may read, `network` answers clients of the open networks.
     * Absent: a key is needed.
     */
    readonly licenseKey?: "none" | "short" | "network";
    /** A key of this scope is enough. Absent: it takes one of scope `all`. */
    readonly scope?: "chat";
  }
  interface FastifyRequest {
    /** What the request's key may do; `all` where none is needed, null without one. */
    keyScope: KeyScope | null;
    /** Checked again, for long streams: a key may be revoked or expire meanwhile, or the first one be made. */
    isStillAllowed(): boolean;
    /** The name of the license key that it presents; null: none that is known. */
    keyName(): string | null;
  }
}

export interface AccessOptions {
  readonly keys: LicenseKeys;
  /** Whether only this machine can connect. */
  readonly loopback: boolean;
  readonly allowedHosts: readonly string[];
  /** Origins whose pages may call, as browsers write them. */
  readonly corsOrigins: readonly string[];
  /** Clients that need no key for a route of `network`. */
  readonly metricsOpen: readonly Network[];
}

export interface Access {
  /** What the client may do by its keys; null: nothing that takes a key. */
  readonly scopeNow: (request: IncomingMessage) => KeyScope | null;
  readonly keyName: (request: IncomingMessage) => string | null;
  /** It comes from an open network. */
  readonly isOpenTo: (request: IncomingMessage) => boolean;
  /** Why it is refused by its host and origin. `url`: without a key in it. */
  readonly refusalOf: (request: IncomingMessage, url: string | undefined) => GatewayError | null;
}

export function createAccess(options: AccessOptions): Access {
  const { keys, loopback } = options;
  const networks = createNetworks(options.metricsOpen);
  const scopeNow = (request: IncomingMessage): KeyScope | null => {
    if (loopback && !keys.areRequired()) return "all";
    let scope: KeyScope | null = null;
    for (const key of presentedKeys(request)) {
      const found = keys.scopeOf(key);
      if (found === "all") return found;
      scope ??= found;
    }
    return scope;
  };
  const keyName = (request: IncomingMessage): string | null => {
    const known = presentedKeys(request).filter((key) => keys.scopeOf(key) !== null);
    // The one that let it in.
    const key = known.find((each) => keys.scopeOf(each) === "all") ?? known[0];
    return key === undefined ? null : keys.nameOf(key);
  };
  // The socket's address: a client may write anything into X-Forwarded-For. A page of another site that has its own name point here
  // would come from an open network too, with its name as the host.
  const isOpenTo = ({ socket, headers: { host } }: IncomingMessage): boolean =>
    networks.has(socket.remoteAddress) && (isAddress(host) || isAllowedHost(host, options.allowedHosts));
  return { scopeNow, keyName, isOpenTo, refusalOf: createGuard(options) };
}

/** Adds the hooks that refuse, before a body is read or a model is looked up. */
export function installAccess(
  app: FastifyInstance,
  { scopeNow, keyName, isOpenTo, refusalOf }: Access,
  corsOrigins: readonly string[],
): void {
  app.decorateRequest("keyScope", null);
  app.decorateRequest("isStillAllowed", function isStillAllowed(this: FastifyRequest) {
    return covers(scopeNow(this.raw), this);
  });
  app.decorateRequest("keyName", function nameOfKey(this: FastifyRequest) {
    return keyName(this.raw);
  });

  app.addHook("onRequest", (request, reply, done) => {
    const refusal = refusalOf(request.raw, request.originalUrl);
    if (refusal) return done(refusal);
    if (corsOrigins.length > 0) {
      const preflight = preflightHeaders(request.method, request.headers, corsOrigins);
      // On the raw response: streams are written past Fastify, and take these with them.
      for (const [name, value] of Object.entries({ ...corsHeaders(request.headers.origin, corsOrigins), ...preflight }))
        reply.raw.setHeader(name, value);
      // A preflight never carries a key.
      if (preflight) return void reply.code(204).send();
    }
    const scope = scopeNow(request.raw);
    request.keyScope = scope;
    if (scope === null) limitBodyTime(request.raw);
    if (covers(scope, request)) return done();
    const { config, url } = request.routeOptions;
    if (config.licenseKey === "network" ? isOpenTo(request.raw) : config.licenseKey !== undefined) return done();
    if (scope !== null) {
      const message = `${request.method} ${url ?? ""} is beyond the scope of this license key, which is ${scope}`;
      return done(new GatewayError("scope_missing", message));
    }
    void reply.header("www-authenticate", "Bearer");
    done(new GatewayError("unauthorized", presentedKeys(request.raw).length === 0 ? keyNeeded : keyInvalid));
  });
}

const keyNeeded =
  "a license key is needed: send it as Authorization: Bearer KEY, X-License-Key or x-api-key, or put /k/KEY before the path";
const keyInvalid = "the license key is not valid here: it is unknown, revoked or expired";

function covers(scope: KeyScope | null, request: FastifyRequest): boolean {
  // Clients take 403 for a bad key where they only try whether a path exists.
  return scope === "all" || (scope === "chat" && (request.is404 || request.routeOptions.config.scope === "chat"));
}

/** The same few hosts come all the time: the last one that was allowed is not looked at again. */
function createGuard({ loopback, allowedHosts, corsOrigins }: AccessOptions): Access["refusalOf"] {
  let allowed: string | undefined;

  function mayAnswer(host: string | undefined): boolean {
    // Elsewhere any name may lead here, and the key alone protects the gateway.
    if (!loopback || (host !== undefined && host === allowed)) return true;
    if (!isAllowedHost(host, allowedHosts)) return false;
    allowed = host;
    return true;
  }

  return (request, url = "") => {
    const { host, origin } = request.headers;
    // The request must name one host: a proxy in front may have checked the other one.
    if (!url.startsWith("/"))
      return new GatewayError("invalid_request", "the request target is not a path (absolute-form is not supported)");
    if (hostsIn(request) > 1) return new GatewayError("invalid_request", "the request has more than one Host header");
    if (!mayAnswer(host))
      return new GatewayError("forbidden_origin", `this gateway does not answer to the host name ${host ?? "(none)"}`);
    if (origin !== undefined && !isAllowedOrigin(origin, { host, allowedHosts, corsOrigins }))
      return new GatewayError("forbidden_origin", `pages of ${origin} may not call this gateway`);
    return null;
  };
}

function hostsIn({ rawHeaders }: IncomingMessage): number {
  let hosts = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at] ?? "";
    if (name.length === 4 && name.toLowerCase() === "host") hosts++;
  }
  return hosts;
}

/** ms in which the body of a client without a key must have come; until then it holds a connection only. */
const strangersBodyMs = 30_000;

function limitBodyTime(raw: FastifyRequest["raw"]): void {
  if (!hasBody(raw.headers)) return;
  const timer = setTimeout(() => {
    if (!raw.complete) raw.destroy();
  }, strangersBodyMs);
  timer.unref();
  raw.once("close", () => clearTimeout(timer));
}

function hasBody({ "content-length": length, "transfer-encoding": encoding }: IncomingHttpHeaders): boolean {
  return encoding !== undefined || (length !== undefined && length !== "0");
}
