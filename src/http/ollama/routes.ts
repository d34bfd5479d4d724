// The family wire-compatible with Ollama's API.

import type { FastifyInstance } from "fastify";
import { nativeVersionSchema } from "../../../schemas/ollama.ts";
import { json, ok } from "../../../schemas/route.ts";
import { installFamily } from "../server/family.ts";
import { installRoutes, type Route, route } from "../server/route.ts";
import type { NativeRoutesDeps } from "./deps.ts";
import { embeddingRoutes } from "./embedding.ts";
import { generationRoutes } from "./generation.ts";
import { libraryRoutes } from "./library.ts";
import { pullRoute } from "./pulling.ts";

export type { NativeRoutesDeps } from "./deps.ts";

/** The version of Ollama's API that is spoken here; clients refuse to talk to one below 0.6.4. */
const apiVersion = "0.20.0";

const versionRoute: Route<unknown> = route({
  method: "GET",
  url: "/version",
  config: { scope: "chat", anyMediaType: true },
  schema: {
    operationId: "nativeVersion",
    summary: "Get the version of this API",
    response: ok("The version.", json(nativeVersionSchema)),
  },
  handler: () => ({ version: apiVersion }),
});

export const nativeRoutes: readonly Route<NativeRoutesDeps>[] = [
  ...generationRoutes,
  ...libraryRoutes,
  versionRoute,
  pullRoute,
  ...embeddingRoutes,
];

export function installNative(app: FastifyInstance, deps: NativeRoutesDeps): void {
  installFamily(app, "native");
  installRoutes(app, "native", nativeRoutes, deps);
}
