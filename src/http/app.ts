// The HTTP application: who may come in, families at their prefixes, answers for what no family has. Does not listen.
import Fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from "fastify";
import { operations } from "../../schemas/operations.ts";
import { GatewayError } from "../core/errors.ts";
import { servedPrefixes } from "../settings/prefixes.ts";
import { type GatewayRoutesDeps, gatewayRoutes } from "./admin/routes.ts";
import { installAccess, rewriteKeyedUrl } from "./auth/access.ts";
import type { LicenseKeys } from "./auth/license-keys.ts";
import { type NativeRoutesDeps, nativeRoutes } from "./ollama/routes.ts";
import { llamaRoutes } from "./openai/llama-routes.ts";
import { type CompatRoutesDeps, compatRoutes } from "./openai/routes.ts";
import { bodyLimitOf } from "./server/body-limits.ts";
import type { Family } from "./server/errors.ts";
import { sendError } from "./server/family.ts";
import { type FirstLook, waitForFirstLook } from "./server/first-look.ts";
import type { OpenAnswers } from "./server/open-answers.ts";
import { openApiRoute } from "./server/openapi-route.ts";
import { routeScopes } from "./server/route-scopes.ts";
import {
  limitConnections,
  limitSilence,
  refuseUnsent,
  type ServerLimits,
  serverOptions,
} from "./server/server-limits.ts";
import { audioRoutes, type SpeechRoutesDeps, speechRoutes } from "./speech/routes.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** The answer has no end of its own: a stop does not wait for it. */
    readonly endless?: boolean;
  }
}

export interface AppSettings extends ServerLimits {
  /** Bytes that a chat may have. */
  readonly bodyLimit: number;
  /** `/alpha/api` */
  readonly nativePrefix: string;
  /** `/beta/v1` */
  readonly compatPrefix: string;
  readonly allowedHosts: readonly string[];
  readonly corsOrigins: readonly string[];
}

export interface AppDeps {
  readonly logger: FastifyBaseLogger;
  readonly settings: AppSettings;
  readonly own: GatewayRoutesDeps;
  /** What the chat families share. */
  readonly families: CompatRoutesDeps & NativeRoutesDeps;
  readonly speech: SpeechRoutesDeps;
  readonly keys: LicenseKeys;
  /** Whether only this machine can connect. */
  readonly loopback: boolean;
  /** No new work is taken. */
  readonly stopping: AbortSignal;
  /** Is told of every answer that has an end. */
  readonly answers: OpenAnswers;
  readonly firstLook: FirstLook;
}

export function buildApp({
  logger,
  settings,
  own,
  families,
  speech,
  keys,
  loopback,
  stopping,
  answers,
  firstLook,
}: AppDeps): FastifyInstance {
  const app = Fastify({
    loggerInstance: logger,
    // A line per request costs a third of its CPU time; failures are logged where they happen.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: bodyLimitOf(undefined, settings.bodyLimit),
    // A longer parameter would be answered before the hooks below are asked.
    routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, maxParamLength: 16_384 },
    rewriteUrl: rewriteKeyedUrl,
    ...serverOptions(settings),
  });
  limitSilence(app.server, settings.writeStallMs);
  refuseUnsent(app.server, Math.max(settings.bodyLimit, speech.uploadLimit));
  const routes: ServedRoute[] = [];
  app.addHook("onRoute", (route) => {
    const { method, url } = route;
    route.bodyLimit ??= bodyLimitOf(route.config, settings.bodyLimit);
    for (const each of [method].flat()) routes.push({ method: each, pattern: patternOf(url) });
  });
  app.addHook("onClose", () => families.upstream.close());
  app.addHook("onRequest", (request, reply, done) => {
    if (request.routeOptions.config.endless !== true) answers.note(reply.raw);
    done();
  });
  limitConnections(app, settings.maxConnections, (fields, message) => logger.warn(fields, message));
  const prefixes = servedPrefixes(settings);
  const { allowedHosts, corsOrigins } = settings;
  installAccess(app, { keys, loopback, allowedHosts, corsOrigins, scopeOfRoute: routeScopes(operations, prefixes) });
  app.addHook("onRequest", (request, reply, done) => {
    if (!stopping.aborted) return done();
    // Whoever looks how the stop goes may do so; the next look is a new connection's, which soon finds nobody.
    void reply.header("connection", "close");
    done(request.method === "GET" ? undefined : new GatewayError("shutting_down", "the gateway is stopping"));
  });

  const scope = (prefix: string, routes: (scope: FastifyInstance) => void): void => {
    void app.register(
      (inner, _options, done) => {
        // What is thrown here itself would end the process.
        try {
          routes(inner);
          done();
        } catch (error) {
          done(error as Error);
        }
      },
      { prefix },
    );
  };
  /** Routes that answer from what the first look shows. */
  const looking = (prefix: string, routes: (scope: FastifyInstance) => void): void =>
    scope(prefix, (inner) => {
      waitForFirstLook(inner, firstLook);
      routes(inner);
    });
  for (const prefix of prefixes.compat) {
    looking(prefix, (inner) => compatRoutes(inner, families));
    looking(prefix, (inner) => audioRoutes(inner, speech));
  }
  for (const prefix of prefixes.llama) looking(prefix, (inner) => llamaRoutes(inner, families));
  // At /api clients are Ollama's, and know its rule: generate, then unload.
  for (const prefix of prefixes.native) looking(prefix, (inner) => nativeRoutes(inner, families, prefix !== "/api"));
  scope("", (inner) => gatewayRoutes(inner, own));
  looking("", (inner) => speechRoutes(inner, speech));
  scope("", (inner) => openApiRoute(inner, { prefixes, version: () => own.status().gateway.version }));
  scope("", (inner) => frontRoutes(inner, prefixes.front));

  const familyOf = (url: string): Family => {
    if (prefixes.compat.some((prefix) => url.startsWith(`${prefix}/`))) return "compat";
    if (ownRoutes.test(url)) return "gateway";
    return prefixes.native.some((prefix) => url.startsWith(`${prefix}/`)) ? "native" : "gateway";
  };
  app.setErrorHandler((error, request, reply) => sendError(familyOf(request.url), error, request, reply));
  app.setNotFoundHandler((request, reply) => {
    const path = request.url.split("?")[0] ?? "";
    const allowed = [...new Set(routes.filter(({ pattern }) => pattern.test(path)).map(({ method }) => method))];
    if (allowed.length === 0)
      return sendError(familyOf(path), new GatewayError("not_found", `there is no ${path}`), request, reply);
    void reply.header("allow", allowed.join(", "));
    const error = new GatewayError("method_not_allowed", `${path} does not take ${request.method}`);
    sendError(familyOf(path), error, request, reply);
  });
  return app;
}

interface ServedRoute {
  readonly method: string;
  readonly pattern: RegExp;
}

/** What a route's address matches, with or without a trailing slash. */
function patternOf(url: string): RegExp {
  const parts = url.replace(/\/+$/, "").split("/");
  const source = parts.map((part) => {
    if (part === "*") return ".+";
    return part.startsWith(":") ? "[^/]+" : part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  });
  return new RegExp(`^${source.join("/")}/*$`);
}

/** Below `/api`, where the gateway's own routes and Ollama's live side by side. */
const ownRoutes =
  /^\/api\/(?:desired|plan|reconcile|events|set-ctx-size|eject-model|remove-model|rpc|hf|tts|stt|models)(?:[/?]|$)/;

/** Ollama's clients look here whether there is a server. */
function frontRoutes(app: FastifyInstance, prefixes: readonly string[]): void {
  for (const url of prefixes) {
    app.route({
      method: ["GET", "HEAD"],
      url: url || "/",
      config: { licenseKey: "none" },
      handler: (_request, reply) =>
        reply.type("text/plain").send("Ollama is running: this is Model Gateway, which speaks its API too.\n"),
    });
  }
}
