// The family compatible with OpenAI's and Anthropic's APIs: bodies and answers pass through untouched but for the model's
// name and the members that are the gateway's own.
import type { FastifyInstance } from "fastify";
import { installFamily } from "../server/family.ts";
import type { CompatRoutesDeps } from "./deps.ts";
import { compatGenerations, generationRoutes } from "./generations.ts";
import { healthRoute } from "./health.ts";
import { modelRoute, modelRoutes } from "./models.ts";

export type { CompatRoutesDeps } from "./deps.ts";

export function compatRoutes(app: FastifyInstance, deps: CompatRoutesDeps): void {
  installFamily(app, "compat");
  generationRoutes(app, deps, compatGenerations);
  modelRoutes(app, deps);
  modelRoute(app, deps);
  healthRoute(app, deps);
}
