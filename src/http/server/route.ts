// A route as one object: address, schema, who may call it, handler. What is served, checked and documented follows from it.
import type { ServerResponse } from "node:http";
import type { FastifyContextConfig, FastifyInstance, FastifyReply, FastifyRequest, FastifySchema } from "fastify";
import { noQuerySchema } from "../../../schemas/admin.ts";
import type { RouteSchema, TypesOf } from "../../../schemas/route.ts";
import type { ErrorCode } from "../../core/error-catalog.ts";
import type { KeyScope } from "../../keys/key-list.ts";

/** `own`: the gateway's; `native`: Ollama's; `compat`: OpenAI's and Anthropic's; `llama`: llama.cpp's; `front`: the bare address. */
export type RouteFamily = "own" | "native" | "compat" | "llama" | "front";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Codes that the route may answer with, beside those that every route may. */
    readonly errors?: readonly ErrorCode[];
    /** Errors have Anthropic's shape. */
    readonly dialect?: "messages";
    /** The body is read whatever its Content-Type. */
    readonly anyMediaType?: true;
    /** Set by {@link installRoutes}. */
    readonly family?: RouteFamily;
    /** Set by {@link installRoutes}: its address below the family's prefix. */
    readonly route?: string;
    /** Set by {@link installRoutes}: what the OpenAPI document has of the route. */
    readonly document?: RouteSchema;
  }
}

export interface Route<Deps> {
  readonly method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  /** Below the family's prefix. A `*` is the last of the schema's `params`. */
  readonly url: string;
  readonly schema: RouteSchema;
  readonly config?: FastifyContextConfig;
  readonly exposeHeadRoute?: false;
  /** Refuses a request before its body is read. */
  readonly refuse?: (deps: Deps, request: FastifyRequest) => void;
  /** The body to check, from what the family reads. */
  parse?(body: unknown, deps: Deps): unknown;
  readonly handler: (deps: Deps, request: FastifyRequest, reply: FastifyReply) => unknown;
  /** The same for a plain request, see plain-requests.ts. */
  readonly plain?: (deps: Deps, body: Buffer, scope: KeyScope | null, response: ServerResponse) => void;
}

/** A route whose schema's parts stand beside its handler; the handler's request has their types. */
export interface RouteSpec<Deps, B, Q>
  extends Omit<RouteSchema, "body" | "querystring">,
    Omit<Route<Deps>, "method" | "url" | "schema" | "handler"> {
  readonly body?: B;
  readonly querystring?: Q;
  readonly handler: (
    deps: Deps,
    request: FastifyRequest<TypesOf<{ readonly body: B; readonly querystring: Q }>>,
    reply: FastifyReply,
  ) => unknown;
}

/** Makes routes that work with the same dependencies. */
export function routesOf<Deps>() {
  const maker =
    (method: Route<Deps>["method"]) =>
    <const B = undefined, const Q = undefined>(url: string, spec: RouteSpec<Deps, B, Q>): Route<Deps> => {
      const { config = {}, exposeHeadRoute, refuse, parse, handler, plain, ...schema } = spec;
      return { method, url, config, schema, exposeHeadRoute, refuse, parse, handler, plain } as Route<Deps>;
    };
  return {
    get: maker("GET"),
    post: maker("POST"),
    put: maker("PUT"),
    patch: maker("PATCH"),
    remove: maker("DELETE"),
  };
}

export function installRoutes<Deps>(
  app: FastifyInstance,
  family: RouteFamily,
  routes: readonly Route<Deps>[],
  deps: Deps,
): void {
  for (const { refuse, parse, handler, plain: _plain, schema, config, ...options } of routes) {
    app.route({
      ...options,
      schema: checkedParts(family, options.method, schema),
      config: { ...config, family, route: options.url, document: schema },
      ...(refuse && { onRequest: async (request: FastifyRequest) => refuse(deps, request) }),
      ...(parse && {
        preValidation: async (request: FastifyRequest) => {
          request.body = parse(request.body, deps);
        },
      }),
      handler: (request, reply) => handler(deps, request, reply),
    });
  }
}

/** What Fastify checks of a request. */
function checkedParts(family: RouteFamily, method: string, { body, querystring }: RouteSchema): FastifySchema {
  // A mistyped `dryRun`, or one on a route that has none, must not become the real thing.
  const query = querystring ?? (family === "own" && method !== "GET" ? noQuerySchema : undefined);
  return {
    ...(body === undefined || "content" in body ? {} : { body }),
    ...(query === undefined ? {} : { querystring: query }),
  };
}
