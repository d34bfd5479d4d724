// The gateway's own routes, one file per topic.
import type { FastifyInstance } from "fastify";
import type { DesiredStore, DocumentChange } from "../../desired/store.ts";
import type { HubClient } from "../../hub/client.ts";
import type { Plan } from "../../plan/actions.ts";
import type { Loop } from "../../reconcile/loop.ts";
import type { Journal } from "../../status/journal.ts";
import type { StatusReport } from "../../status/report.ts";
import type { Edits } from "../edits/edits.ts";
import { installFamily } from "../family.ts";
import { desiredRoutes } from "./desired.ts";
import { hubRoutes } from "./hub.ts";
import { modelRoutes } from "./models.ts";
import { rpcRoutes } from "./rpc.ts";
import { statusRoutes } from "./status.ts";

export interface GatewayRoutesDeps {
  readonly store: DesiredStore;
  readonly loop: Loop;
  readonly journal: Journal;
  readonly status: () => StatusReport;
  /** What would be done for another document, with the world as it was last seen. */
  readonly planFor: (change: DocumentChange) => Plan;
  readonly waitTimeoutMs: number;
  readonly edits: Edits;
  readonly hub: HubClient;
}

export function gatewayRoutes(app: FastifyInstance, deps: GatewayRoutesDeps): void {
  installFamily(app, "gateway");
  statusRoutes(app, deps);
  desiredRoutes(app, deps);
  modelRoutes(app, deps.edits);
  rpcRoutes(app, deps.edits);
  hubRoutes(app, deps.hub, Date.now);
}
