// The gateway's own routes, one file per topic.
import type { FastifyInstance } from "fastify";
import { steadyNow } from "../../core/steady.ts";
import type { Journal } from "../../status/journal.ts";
import { installFamily } from "../server/family.ts";
import { installRoutes, type Route } from "../server/route.ts";
import { type DesiredRoutesDeps, desiredRoutes } from "./desired.ts";
import { type DiskRoutesDeps, diskRoutes } from "./disk.ts";
import { type EditRoutesDeps, editRoutes } from "./edits.ts";
import { createEventStreams, type EventRouteDeps, eventsRoute } from "./events.ts";
import { createHubQueue, type HubRoutesDeps, hubRoutes } from "./hub.ts";
import { type ModelReadyDeps, modelReadyRoutes } from "./model-ready.ts";
import { createReports, type StatusRoutesDeps, statusRoutes } from "./status.ts";

type OwnRoutesDeps = StatusRoutesDeps &
  ModelReadyDeps &
  DesiredRoutesDeps &
  EventRouteDeps &
  EditRoutesDeps &
  HubRoutesDeps &
  DiskRoutesDeps;

export const ownRoutes: readonly Route<OwnRoutesDeps>[] = [
  ...statusRoutes,
  ...modelReadyRoutes,
  ...desiredRoutes,
  eventsRoute,
  ...editRoutes,
  ...hubRoutes,
  ...diskRoutes,
];

export type GatewayRoutesDeps = Omit<OwnRoutesDeps, "reportFor" | "streamEvents" | "hubQueue"> & {
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
    reportFor: createReports(deps.status, steadyNow),
    streamEvents: createEventStreams({ journal: deps.journal, most: deps.eventListeners, cutOff: deps.cutOff }),
    hubQueue: createHubQueue(),
  });
}
