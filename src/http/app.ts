// The HTTP application: guards, families at their prefixes, answers for what no family has. Does not listen.
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import { GatewayError } from "../core/errors.ts";
import type { Admission } from "./admission.ts";
import type { Catalogue } from "./catalogue.ts";
import { compatRoutes } from "./compat/routes.ts";
import type { Family } from "./errors.ts";
import type { ExchangeDeps } from "./exchange.ts";
import { sendError } from "./family.ts";
import { type GatewayRoutesDeps, gatewayRoutes } from "./gateway/routes.ts";
import { isAllowedHost, isAllowedOrigin } from "./guards.ts";
import { nativeRoutes } from "./native/routes.ts";
import { createUpstream } from "./upstream.ts";

/** Where the families are served. The second is for clients that know only a root. */
const compatPrefixes = ["/beta/v1", "/v1"] as const;
const nativePrefixes = ["/alpha/api", "/api"] as const;

export interface AppDeps extends Omit<GatewayRoutesDeps, "status"> {
  readonly status: GatewayRoutesDeps["status"];
  readonly logger: FastifyBaseLogger;
  readonly admission: Admission;
  readonly catalogue: Catalogue;
  readonly bodyLimit: number;
  readonly allowedHosts: readonly string[];
  readonly probeAfterMs: number;
  /** No new work is taken. */
  readonly stopping: AbortSignal;
  /** Answers still in flight end now. */
  readonly cutOff: AbortSignal;
}

export function buildApp(deps: AppDeps): FastifyInstance {
  const app = Fastify({
    loggerInstance: deps.logger,
    // A line per request costs a third of its CPU time; failures are logged where they happen.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: deps.bodyLimit,
    routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true },
    // Streams end when the model is done; a stop waits for them elsewhere.
    requestTimeout: 0,
    keepAliveTimeout: 72_000,
    forceCloseConnections: true,
  });
  const upstream = createUpstream({ probeAfterMs: deps.probeAfterMs });
  app.addHook("onClose", () => upstream.close());
  app.addHook("onRequest", (request, _reply, done) => {
    if (!isAllowedHost(request.headers.host, deps.allowedHosts)) {
      return done(
        new GatewayError(
          "forbidden_origin",
          `this gateway does not answer to the host name ${request.headers.host ?? "(none)"}`,
        ),
      );
    }
    if (!isAllowedOrigin(request.headers.origin, deps.allowedHosts)) {
      return done(
        new GatewayError(
          "forbidden_origin",
          `pages of ${request.headers.origin ?? "an unknown origin"} may not call this gateway`,
        ),
      );
    }
    if (deps.stopping.aborted && request.method !== "GET")
      return done(new GatewayError("shutting_down", "the gateway is stopping"));
    done();
  });

  const exchange: ExchangeDeps = {
    admission: deps.admission,
    upstream,
    cutOff: deps.cutOff,
    onFailure: (error, model) => deps.logger.warn({ err: error, model, code: error.code }, "a generation failed"),
  };
  for (const prefix of compatPrefixes) {
    void app.register(
      (scope, _options, done) => {
        compatRoutes(scope, { ...exchange, catalogue: deps.catalogue });
        done();
      },
      { prefix },
    );
  }
  for (const prefix of nativePrefixes) {
    void app.register(
      (scope, _options, done) => {
        nativeRoutes(scope, { ...exchange, catalogue: deps.catalogue });
        done();
      },
      { prefix },
    );
  }
  void app.register((scope, _options, done) => {
    gatewayRoutes(scope, deps);
    done();
  });
  app.route({
    method: ["GET", "HEAD"],
    url: "/",
    handler: (_request, reply) =>
      reply.type("text/plain").send("Ollama is running: this is Model Gateway, which speaks its API too.\n"),
  });
  app.setErrorHandler((error, request, reply) => sendError(familyOf(request.url), error, request, reply));
  app.setNotFoundHandler((request, reply) => {
    const allowed = ["GET", "POST", "PUT", "PATCH", "DELETE"].filter((method) =>
      app.hasRoute({ method, url: request.url.split("?")[0] ?? "" }),
    );
    const path = request.url.split("?")[0] ?? "";
    if (allowed.length === 0)
      return sendError(familyOf(request.url), new GatewayError("not_found", `there is no ${path}`), request, reply);
    void reply.header("allow", allowed.join(", "));
    sendError(
      familyOf(request.url),
      new GatewayError("method_not_allowed", `${path} does not take ${request.method}`),
      request,
      reply,
    );
  });
  return app;
}

const ownRoutes = /^\/api\/(desired|plan|reconcile|events)\b/;

function familyOf(url: string): Family {
  if (compatPrefixes.some((prefix) => url.startsWith(`${prefix}/`))) return "compat";
  if (ownRoutes.test(url)) return "gateway";
  return nativePrefixes.some((prefix) => url.startsWith(`${prefix}/`)) ? "native" : "gateway";
}
