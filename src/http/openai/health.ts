// llama.cpp's health check, which its clients look for with and without a version in the path.
import { healthSchema } from "../../../schemas/openai.ts";
import { json, ok } from "../../../schemas/route.ts";
import { GatewayError } from "../../core/errors.ts";
import { type Route, route } from "../server/route.ts";
import type { CompatRoutesDeps } from "./deps.ts";

export const healthRoute: Route<CompatRoutesDeps> = route({
  method: "GET",
  url: "/health",
  config: { scope: "chat", errors: ["router_unavailable"] },
  schema: {
    operationId: "health",
    summary: "Check whether models can answer",
    response: ok("They can.", json(healthSchema)),
  },
  handler: ({ routerReady }: CompatRoutesDeps) => {
    if (!routerReady()) throw new GatewayError("router_unavailable", "the router is not running");
    return { status: "ok" };
  },
});
