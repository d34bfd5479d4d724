// Unloads a model. The document does not change: requests decide what is loaded.

import type { Catalog } from "../catalog/catalog.ts";
import { GatewayError } from "../core/errors.ts";
import type { Scheduler } from "../scheduler/scheduler.ts";
import type { StatusReport } from "../status/report.ts";
import type { Edits } from "./edits.ts";

export function ejectEdit(deps: {
  readonly scheduler: Pick<Scheduler, "unload">;
  readonly catalog: Pick<Catalog, "resolve">;
  readonly status: () => StatusReport;
}): Edits["eject"] {
  return async (name) => {
    const model = deps.catalog.resolve(name);
    // Continues without its client: a drain that ended with it would cut a response.
    await deps.scheduler.unload(model.upstreamId, new AbortController().signal);
    const { router } = deps.status();
    if (router.phase === "ready" && !router.connected)
      throw new GatewayError(
        "router_unavailable",
        `the router does not answer: nobody knows whether ${model.id} is loaded`,
      );
    return { id: model.id };
  };
}
