// llama.cpp's health check, which its clients look for with and without a version in the path.
import { openaiSchemas } from "../../../schemas/routes/openai.ts";
import { GatewayError } from "../../core/errors.ts";
import { type Route, route } from "../server/route.ts";
import type { CompatRoutesDeps } from "./deps.ts";

export const healthRoute: Route<CompatRoutesDeps> = route({
  method: "GET",
  url: "/health",
  config: { scope: "chat", errors: ["router_unavailable"] },
  schema: openaiSchemas.health,
  handler: ({ routerReady }: CompatRoutesDeps) => {
    if (!routerReady()) throw new GatewayError("router_unavailable", "the router is not running");
    return { status: "ok" };
  },
});
