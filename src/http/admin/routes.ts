// The gateway's own routes, one file per topic.
import type { FastifyInstance } from "fastify";
import type { Edits } from "../../commands/edits.ts";
import { steadyNow } from "../../core/steady.ts";
import type { DesiredStore } from "../../desired/store.ts";
import type { HubClient } from "../../hub/client.ts";
import type { Loop } from "../../reconcile/loop.ts";
import { installFamily } from "../server/family.ts";
import { type DesiredRoutesDeps, desiredRoutes } from "./desired.ts";
import { type DiskRoutesDeps, diskRoutes } from "./disk.ts";
import { hubRoutes } from "./hub.ts";
import { metricsRoute } from "./metrics.ts";
import { modelRoutes } from "./models.ts";
import { refuseUnknownQueries } from "./query.ts";
import { rpcRoutes } from "./rpc.ts";
import { type StatusRoutesDeps, statusRoutes } from "./status.ts";

export interface GatewayRoutesDeps extends DesiredRoutesDeps, DiskRoutesDeps, StatusRoutesDeps {
  readonly loop: Loop;
  readonly store: DesiredStore;
  readonly edits: Edits;
  readonly hub: HubClient;
}

export function gatewayRoutes(app: FastifyInstance, deps: GatewayRoutesDeps): void {
  installFamily(app, "gateway");
  refuseUnknownQueries(app);
  statusRoutes(app, deps);
  metricsRoute(app, deps.status);
  desiredRoutes(app, deps);
  modelRoutes(app, deps.edits);
  diskRoutes(app, deps);
  rpcRoutes(app, deps.edits);
  hubRoutes(app, deps.hub, steadyNow);
}
