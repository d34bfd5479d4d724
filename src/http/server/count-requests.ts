// Counts the requests that Fastify answers. A generation, which is written past it, counts itself.
import type { FastifyInstance } from "fastify";
import { errorCatalog } from "../../core/error-catalog.ts";
import type { RequestMeters } from "../../metrics/requests.ts";
import type { RouteFamily } from "./route.ts";

declare module "fastify" {
  interface FastifyRequest {
    /** The id of the model that answers it; empty: none does. */
    servedModel: string;
  }
}

/** As the metrics name them. */
export const familyLabels: Readonly<Record<RouteFamily, string>> = {
  own: "gateway",
  compat: "openai",
  native: "ollama",
  llama: "llama",
  front: "front",
};

export function countRequests(app: FastifyInstance, meters: RequestMeters): void {
  app.decorateRequest("servedModel", "");
  app.addHook("onSend", (request, { statusCode }, _payload, done) => {
    const { family, route = noRoute } = request.routeOptions.config;
    meters
      .family(family ? familyLabels[family] : "none")
      .of(route, request.servedModel)
      .ended(statusCode === leftStatus ? 0 : statusCode);
    done();
  });
}

const leftStatus = errorCatalog.cancelled.status;

/** An address that no family has. */
const noRoute = "other";
