// The gateway's own routes, one file per topic.

import type { FastifyInstance } from "fastify";
import { openApiSchema } from "../../../schemas/desired.ts";
import { json, ok } from "../../../schemas/route.ts";
import { steadyNow } from "../../core/steady.ts";
import type { Journal } from "../../status/journal.ts";
import { installFamily } from "../server/family.ts";
import { installRoutes, type Route, route } from "../server/route.ts";
import { type DesiredRoutesDeps, desiredRoutes } from "./desired.ts";
import { type DiskRoutesDeps, diskRoutes } from "./disk.ts";
import { type EditRoutesDeps, editRoutes } from "./edits.ts";
import { createEventStreams } from "./events.ts";
import { createHubQueue, type HubRoutesDeps, hubRoutes } from "./hub.ts";
import { metricsRoute } from "./metrics.ts";
import { createReports, eventsRoute, type StatusRoutesDeps, statusRoutes } from "./status.ts";

interface OpenApiDeps {
  readonly openApi: () => object;
}

const openApiRoute: Route<OpenApiDeps> = route({
  method: "GET",
  url: "/openapi.json",
  schema: {
    operationId: "openapi",
    summary: "Get this description",
    response: ok("An OpenAPI document.", json(openApiSchema)),
  },
  handler: ({ openApi }: OpenApiDeps) => openApi(),
});

type OwnRoutesDeps = StatusRoutesDeps &
  DesiredRoutesDeps &
  EditRoutesDeps &
  HubRoutesDeps &
  DiskRoutesDeps &
  OpenApiDeps;

export const ownRoutes: readonly Route<OwnRoutesDeps>[] = [
  ...statusRoutes,
  metricsRoute,
  ...desiredRoutes,
  eventsRoute,
  openApiRoute,
  ...editRoutes,
  ...hubRoutes,
  ...diskRoutes,
];

export type GatewayRoutesDeps = Omit<OwnRoutesDeps, "openApi" | "reportFor" | "streamEvents" | "hubQueue"> & {
  readonly journal: Journal;
  /** Event streams end. */
  readonly cutOff: AbortSignal;
  /** Event streams at once. */
  readonly eventListeners: number;
};

export function gatewayRoutes(app: FastifyInstance, deps: GatewayRoutesDeps): void {
  installFamily(app, "gateway");
  installRoutes(app, "own", ownRoutes, {
    ...deps,
    openApi: () => app.swagger(),
    reportFor: createReports(deps.status, steadyNow),
    streamEvents: createEventStreams({ journal: deps.journal, most: deps.eventListeners, cutOff: deps.cutOff }),
    hubQueue: createHubQueue(),
  });
}
