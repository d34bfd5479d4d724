// The family compatible with OpenAI's and Anthropic's APIs, with a version in the path, and llama.cpp's own routes without one.
// Bodies and answers pass through untouched but for the model's name and the members that are the gateway's own.
import type { FastifyInstance } from "fastify";
import { installFamily } from "../server/family.ts";
import type { PlainRoute } from "../server/plain-requests.ts";
import { installRoutes, type Route } from "../server/route.ts";
import { type CompatRoutesDeps, compatGenerations, llamaGenerations, unversioned } from "./generations.ts";
import { healthRoute, modelRoute, modelRoutes } from "./models.ts";
import { propsRoute } from "./props.ts";

export type { CompatRoutesDeps } from "./generations.ts";

export const compatRoutes: readonly Route<CompatRoutesDeps>[] = [
  ...compatGenerations,
  ...modelRoutes,
  modelRoute,
  healthRoute,
];

/** Its web page and other front ends look for them. */
export const llamaRoutes: readonly Route<CompatRoutesDeps>[] = [
  ...llamaGenerations,
  ...[...modelRoutes, healthRoute].map(unversioned),
  propsRoute,
];

/** What plain requests may be for, by path. */
export function plainRoutes(
  { compat, llama }: Readonly<Record<"compat" | "llama", readonly string[]>>,
  parts: Readonly<Record<"compat" | "llama", CompatRoutesDeps>>,
): ReadonlyMap<string, PlainRoute> {
  const below = (prefixes: readonly string[], routes: readonly Route<CompatRoutesDeps>[], deps: CompatRoutesDeps) =>
    prefixes.flatMap((prefix) =>
      routes.flatMap(({ url, plain }) => (plain ? [[prefix + url, plain.bind(null, deps)] as const] : [])),
    );
  return new Map([...below(compat, compatGenerations, parts.compat), ...below(llama, llamaGenerations, parts.llama)]);
}

export function installCompat(app: FastifyInstance, family: "compat" | "llama", deps: CompatRoutesDeps): void {
  installFamily(app, "compat");
  installRoutes(app, family, family === "compat" ? compatRoutes : llamaRoutes, deps);
}
