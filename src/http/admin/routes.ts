// The gateway's own routes, one file per topic.
import type { FastifyInstance } from "fastify";
import type { Journal } from "../../status/journal.ts";
import { installFamily } from "../server/family.ts";
import { installRoutes, type Route } from "../server/route.ts";
import { desiredRoutes } from "./desired.ts";
import { type DiskRoutesDeps, diskRoutes } from "./disk.ts";
import { type EditRoutesDeps, editRoutes } from "./edits.ts";
import { createEventStreams, type EventRouteDeps, eventsRoute } from "./events.ts";
import { type HistoryRoutesDeps, historyRoutes } from "./history.ts";
import { createHubQueue, type HubRoutesDeps, hubRoutes } from "./hub.ts";
import { type LogRoutesDeps, logsRoute } from "./logs.ts";
import { type ModelReadyDeps, modelReadyRoutes } from "./model-ready.ts";
import { type RequestRoutesDeps, requestRoutes } from "./requests.ts";
import { type StatusRoutesDeps, statusRoutes } from "./status.ts";

type OwnRoutesDeps = StatusRoutesDeps &
  ModelReadyDeps &
  HistoryRoutesDeps &
  EventRouteDeps &
  EditRoutesDeps &
  HubRoutesDeps &
  DiskRoutesDeps &
  LogRoutesDeps &
  RequestRoutesDeps;

export const ownRoutes: readonly Route<OwnRoutesDeps>[] = [
  ...statusRoutes,
  ...modelReadyRoutes,
  ...desiredRoutes,
  ...historyRoutes,
  eventsRoute,
  logsRoute,
  ...editRoutes,
  ...hubRoutes,
  ...diskRoutes,
  ...requestRoutes,
];

export type GatewayRoutesDeps = Omit<OwnRoutesDeps, "streamEvents" | "hubQueue" | "hubMemoryQueue"> & {
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
    streamEvents: createEventStreams({ journal: deps.journal, most: deps.eventListeners, cutOff: deps.cutOff }),
    hubQueue: createHubQueue(),
    hubMemoryQueue: createHubQueue(1, 4),
  });
}
