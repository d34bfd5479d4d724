// llama.cpp's own routes, which its web page and other front ends look for beside the compatible family.
import type { FastifyInstance } from "fastify";
import { installFamily } from "../server/family.ts";
import { installRoutes, type Route } from "../server/route.ts";
import type { CompatRoutesDeps } from "./deps.ts";
import { llamaGenerations, unversioned } from "./generations.ts";
import { healthRoute } from "./health.ts";
import { inspectionRoutes } from "./inspection.ts";
import { modelRoutes } from "./models.ts";

export const llamaRoutes: readonly Route<CompatRoutesDeps>[] = [
  ...llamaGenerations,
  ...[...modelRoutes, healthRoute].map(unversioned),
  ...inspectionRoutes,
];

export function installLlama(app: FastifyInstance, deps: CompatRoutesDeps): void {
  installFamily(app, "compat");
  installRoutes(app, "llama", llamaRoutes, deps);
}
