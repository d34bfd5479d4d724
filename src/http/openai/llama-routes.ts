// llama.cpp's own routes, which its web page and other front ends look for beside the compatible family.
import type { FastifyInstance } from "fastify";
import { installFamily } from "../server/family.ts";
import type { CompatRoutesDeps } from "./deps.ts";
import { generationRoutes, llamaGenerations } from "./generations.ts";
import { healthRoute } from "./health.ts";
import { inspectionRoutes } from "./inspection.ts";
import { modelRoutes } from "./models.ts";

export function llamaRoutes(app: FastifyInstance, deps: CompatRoutesDeps): void {
  installFamily(app, "compat");
  generationRoutes(app, deps, llamaGenerations);
  modelRoutes(app, deps);
  healthRoute(app, deps);
  inspectionRoutes(app, deps);
}
