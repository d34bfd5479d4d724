// llama.cpp's health check, which its clients look for with and without a version in the path.
import type { FastifyInstance } from "fastify";
import { GatewayError } from "../../core/errors.ts";
import type { CompatRoutesDeps } from "./deps.ts";

export function healthRoute(app: FastifyInstance, { routerReady }: CompatRoutesDeps): void {
  app.get("/health", () => {
    if (!routerReady()) throw new GatewayError("router_unavailable", "the router is not running");
    return { status: "ok" };
  });
}
