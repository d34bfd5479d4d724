// The family compatible with OpenAI's and Anthropic's APIs: bodies and answers pass through untouched but for the model's
// name and the members that are the gateway's own.
import type { FastifyInstance } from "fastify";
import { installFamily } from "../server/family.ts";
import { installRoutes, type Route } from "../server/route.ts";
import type { CompatRoutesDeps } from "./deps.ts";
import { compatGenerations } from "./generations.ts";
import { healthRoute } from "./health.ts";
import { modelRoute, modelRoutes } from "./models.ts";

export type { CompatRoutesDeps } from "./deps.ts";

export const compatRoutes: readonly Route<CompatRoutesDeps>[] = [
  ...compatGenerations,
  ...modelRoutes,
  modelRoute,
  healthRoute,
];

export function installCompat(app: FastifyInstance, deps: CompatRoutesDeps): void {
  installFamily(app, "compat");
  installRoutes(app, "compat", compatRoutes, deps);
}
