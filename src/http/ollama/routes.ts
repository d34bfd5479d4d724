// The family wire-compatible with Ollama's API.
import type { FastifyInstance } from "fastify";
import { installFamily } from "../server/family.ts";
import { installRoutes } from "../server/route.ts";
import type { NativeRoutesDeps } from "./deps.ts";
import { embeddingRoutes } from "./embedding.ts";
import { generationRoutes } from "./generation.ts";
import { libraryRoutes } from "./library.ts";
import { pullRoute } from "./pulling.ts";

export type { NativeRoutesDeps } from "./deps.ts";

export const nativeRoutes = [...generationRoutes, ...libraryRoutes, pullRoute, ...embeddingRoutes];

export function installNative(app: FastifyInstance, deps: NativeRoutesDeps): void {
  installFamily(app, "native");
  installRoutes(app, "native", nativeRoutes, deps);
}
