// The HTTP application: access, families at their prefixes, answers for what no family has. Does not listen.
import Fastify, { type FastifyBaseLogger, type FastifyInstance, type FastifyRequest } from "fastify";
import { GatewayError, stoppingError } from "../core/errors.ts";
import type { LicenseKeys } from "../keys/license-keys.ts";
import type { Network } from "../settings/networks.ts";
import { servedPrefixes } from "../settings/prefixes.ts";
import { type GatewayRoutesDeps, gatewayRoutes, ownRoutes } from "./admin/routes.ts";
import { createAccess, installAccess } from "./auth/access.ts";
import { rewriteKeyedUrl } from "./auth/presented.ts";
import { frontRoute, pageRoutes } from "./front.ts";
import { type HubServingDeps, hubServingRoutes, installHubServing } from "./hub/routes.ts";
import { installNative, type NativeRoutesDeps, nativeRoutes } from "./ollama/routes.ts";
import { type CompatRoutesDeps, compatRoutes, installCompat, llamaRoutes, plainRoutes } from "./openai/routes.ts";
import { bodyLimitOf } from "./server/collect-body.ts";
import { countRequests, familyLabels } from "./server/count-requests.ts";
import type { Family } from "./server/errors.ts";
import { sendError } from "./server/family.ts";
import { type FirstLook, waitForFirstLook } from "./server/first-look.ts";
import type { OpenAnswers } from "./server/open-answers.ts";
import { installOpenApi } from "./server/openapi.ts";
import { createPlainServer } from "./server/plain-requests.ts";
import { installRoutes, type Route, type RouteFamily } from "./server/route.ts";
import {
  isSurplus,
  limitConnections,
  limitSilence,
  refuseUnsent,
  type ServerLimits,
  serverOptions,
} from "./server/server-limits.ts";
import { compileCheck, refusalOf } from "./server/validate.ts";
import { audioRoutes, installAudio, installSpeech, type SpeechRoutesDeps, speechRoutes } from "./speech/routes.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** The response never ends by itself, so a stop does not wait for it. */
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
  readonly metricsOpen: readonly Network[];
}

export interface AppDeps {
  readonly logger: FastifyBaseLogger;
  readonly settings: AppSettings;
  readonly own: GatewayRoutesDeps & Omit<HubServingDeps, "fileQueue">;
  /** What the chat families share. */
  readonly families: Omit<CompatRoutesDeps & NativeRoutesDeps, "zeroEjects" | "meters">;
  readonly speech: SpeechRoutesDeps;
  readonly keys: LicenseKeys;
  /** Whether only this machine can connect. */
  readonly loopback: boolean;
  /** Told to stop: clients are to go elsewhere. */
  readonly leaving: AbortSignal;
  /** No new work is taken. */
  readonly stopping: AbortSignal;
  /** Counts the responses that a stop waits for. */
  readonly answers: OpenAnswers;
  readonly firstLook: FirstLook;
}

export function buildApp(deps: AppDeps): FastifyInstance {
  const { settings, families, leaving, stopping, answers } = deps;
  const access = createAccess({ ...settings, ...deps });
  const prefixes = servedPrefixes(settings);
  const requests = deps.own.meters.requests;
  const partsOf = (family: RouteFamily) => ({ ...families, meters: requests.family(familyLabels[family]) });
  // Without a logger of its own: it listens to each response for one, a twentieth of a short chat. Failures are logged where they happen.
  const app = Fastify({
    serverFactory: (others) =>
      createPlainServer(
        serverOptions(settings),
        {
          routes: plainRoutes(prefixes, { compat: partsOf("compat"), llama: partsOf("llama") }),
          access,
          mostBytes: settings.bodyLimit,
          isOpen: (socket) =>
            settings.corsOrigins.length === 0 &&
            !leaving.aborted &&
            deps.firstLook.loop.last() !== null &&
            !isSurplus(socket),
          onBegin: answers.note,
        },
        others,
      ),
    bodyLimit: bodyLimitOf(undefined, settings.bodyLimit),
    // A longer parameter would be answered before the hooks below are asked.
    routerOptions: { ignoreTrailingSlash: true, ignoreDuplicateSlashes: true, maxParamLength: 16_384 },
    rewriteUrl: rewriteKeyedUrl,
    schemaErrorFormatter: refusalOf,
    // No route uses its own: without these Fastify loads and builds them at each start.
    schemaController: {
      compilersFactory: { buildValidator: () => compileCheck as never, buildSerializer: () => () => JSON.stringify },
    },
    ...serverOptions(settings),
  });
  app.decorate("logDefect", (error: unknown) => deps.logger.error({ err: error }, "a request failed"));
  limitSilence(app.server, settings.writeStallMs);
  refuseUnsent(app.server, Math.max(settings.bodyLimit, deps.speech.uploadLimit));
  const served: { readonly methods: readonly string[]; readonly pattern: RegExp }[] = [];
  app.addHook("onRoute", (route) => {
    route.bodyLimit ??= bodyLimitOf(route.config, settings.bodyLimit);
    served.push({ methods: [route.method].flat(), pattern: patternOf(route.url) });
  });
  app.addHook("onClose", () => families.upstream.close());
  limitConnections(app, settings.maxConnections, (fields, message) => deps.logger.warn(fields, message));
  countRequests(app, requests);
  installAccess(app, access, settings.corsOrigins);
  app.addHook("onRequest", (request, reply, done) => {
    if (request.routeOptions.config.endless !== true) answers.note(reply.raw);
    if (!leaving.aborted) return done();
    // Its next request takes a new connection, which leads to another gateway or is soon refused. Streams are written past Fastify.
    reply.raw.setHeader("connection", "close");
    // A client may still read how the stop proceeds.
    done(!stopping.aborted || request.method === "GET" ? undefined : stoppingError());
  });

  installOpenApi(app);
  const scope = (prefix: string, routes: (scope: FastifyInstance) => void): void => {
    // Async: what a plain function threw would end the process.
    void app.register(async (inner) => routes(inner), { prefix });
  };
  /** Routes that answer from what the first look shows. */
  const looking = (prefix: string, routes: (scope: FastifyInstance) => void): void =>
    scope(prefix, (inner) => {
      waitForFirstLook(inner, deps.firstLook);
      routes(inner);
    });
  for (const prefix of prefixes.compat) {
    looking(prefix, (inner) => installCompat(inner, "compat", partsOf("compat")));
    looking(prefix, (inner) => installAudio(inner, deps.speech));
  }
  for (const prefix of prefixes.llama) looking(prefix, (inner) => installCompat(inner, "llama", partsOf("llama")));
  // At /api clients are Ollama's, and expect its rule: generate, then unload.
  for (const prefix of prefixes.native)
    looking(prefix, (inner) => installNative(inner, { ...partsOf("native"), zeroEjects: prefix !== "/api" }));
  scope("", (inner) => gatewayRoutes(inner, deps.own));
  looking("", (inner) => installSpeech(inner, deps.speech));
  looking("", (inner) => installHubServing(inner, deps.own));
  scope("", (inner) => installRoutes(inner, "own", pageRoutes, {}));
  for (const prefix of prefixes.front)
    scope(prefix, (inner) => installRoutes(inner, "front", [frontRoute], { hasPage: prefix === "" }));

  const familyOf = (path: string): Family => {
    if (prefixes.compat.some((prefix) => path.startsWith(`${prefix}/`))) return "compat";
    if (ownPlaces.has(placeOf(path))) return "gateway";
    return prefixes.native.some((prefix) => path.startsWith(`${prefix}/`)) ? "native" : "gateway";
  };
  app.setErrorHandler((error, request, reply) => sendError(familyOf(pathOf(request)), error, request, reply));
  app.setNotFoundHandler((request, reply) => {
    const path = pathOf(request);
    const family = familyOf(path);
    const allowed = served.filter(({ pattern }) => pattern.test(path)).flatMap(({ methods }) => methods);
    if (allowed.length === 0) return sendError(family, absence(family, path), request, reply);
    void reply.header("allow", [...new Set(allowed)].join(", "));
    const error = new GatewayError("method_not_allowed", `${path} does not take ${request.method}`);
    sendError(family, error, request, reply);
  });
  return app;
}

/** What a route's address matches, with or without a trailing slash. */
function patternOf(url: string): RegExp {
  const source = url
    .replace(/\/+$/, "")
    .replaceAll(".", "\\.")
    .replace("*", ".+")
    .replace(/:[^/]+/g, "[^/]+");
  return new RegExp(`^${source}/*$`);
}

function pathOf({ url }: FastifyRequest): string {
  return url.split("?")[0] ?? "";
}

/** Routes of Ollama's API that this gateway has none of. */
const notOffered = /\/(?:create|push|blobs|status|me|signout|user|experimental)(?:\/|$)/;

/** Ollama's clients take "not found" for an old server: a route that it has and this gateway has not is refused as that. */
function absence(family: Family, path: string): GatewayError {
  return family === "native" && notOffered.test(path)
    ? new GatewayError("not_supported", `${path} of Ollama's API is not offered here`)
    : new GatewayError("not_found", `there is no ${path}`);
}

/** `/api/hf` of `/api/hf/search`. */
function placeOf(path: string): string {
  return path.split("/", 3).join("/");
}

/** Every route by its family, below the family's prefixes. */
export const routesByFamily: Readonly<Record<RouteFamily, readonly Route<never>[]>> = {
  own: [...ownRoutes, ...speechRoutes, ...hubServingRoutes, ...pageRoutes],
  compat: [...compatRoutes, ...audioRoutes],
  native: nativeRoutes,
  llama: llamaRoutes,
  front: [frontRoute],
};

/** Below `/api`, where the gateway's own routes and Ollama's live side by side. */
const ownPlaces: ReadonlySet<string> = new Set(
  routesByFamily.own.map(({ url }) => placeOf(url)).filter((place) => place.startsWith("/api/")),
);
