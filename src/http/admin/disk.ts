// What the models take on the disk, and having deleted what of it serves nobody.
import { ownSchemas } from "../../../schemas/routes/own.ts";
import type { Inventory } from "../../cache/inventory/inventory.ts";
import { diskReport } from "../../cache/report/disk-report.ts";
import type { Collect } from "../../commands/collect.ts";
import { GatewayError } from "../../core/errors.ts";
import { isJsonObject } from "../../core/merge-patch.ts";
import type { DesiredStore } from "../../desired/store.ts";
import type { Collector } from "../../execute/cache-gc.ts";
import type { SpeechStore } from "../../execute/speech-files.ts";
import type { Loop } from "../../reconcile/loop.ts";
import type { LastUsed } from "../../state/last-used.ts";
import { callOf } from "../server/call.ts";
import { type Route, route } from "../server/route.ts";

export interface DiskRoutesDeps {
  readonly collect: Collect;
  readonly store: DesiredStore;
  readonly loop: Pick<Loop, "last" | "totals">;
  readonly collector: Collector;
  readonly speechFiles: Pick<SpeechStore, "report">;
  readonly inventory: Pick<Inventory, "entries">;
  readonly lastUsed: Pick<LastUsed, "entries">;
}

/** Whoever says there that it is no dry run would be told of one. An empty object says nothing. */
function refuseBody(body: unknown): void {
  const isEmpty = body === undefined || body === null || (isJsonObject(body) && Object.keys(body).length === 0);
  if (isEmpty) return;
  const message = "this call takes no body: dryRun goes into the address, POST /api/models/gc?dryRun=false";
  throw new GatewayError("invalid_request", message);
}

/** In lower case. */
function modelOf(key: string): string {
  return key.slice(key.indexOf("/") + 1).toLowerCase();
}

export const diskRoutes: readonly Route<DiskRoutesDeps>[] = [
  route({
    method: "GET",
    url: "/api/models/disk",
    config: { errors: ["cache_unwritable", "router_unavailable"] },
    schema: ownSchemas.disk,
    handler: report,
  }),
  route({
    method: "POST",
    url: "/api/models/gc",
    config: { errors: ["cache_unwritable", "suspended", "shutting_down", "wait_timeout", "state_unwritable"] },
    schema: ownSchemas.collect,
    handler: async ({ collect }: DiskRoutesDeps, request, reply) => {
      refuseBody(request.body);
      if (request.query.dryRun !== "false") return { dryRun: true, ...(await collect.preview()) };
      return { dryRun: false, ...(await collect.run(callOf(request, reply))) };
    },
  }),
];

async function report(deps: DiskRoutesDeps): Promise<object> {
  const look = await deps.collector.look();
  const pass = deps.loop.last();
  if (!pass) throw new GatewayError("router_unavailable", "the first look at the world is under way");
  const { router, freeBytes } = pass.observed;
  const listed = router.models.state === "known" ? router.models.value : [];
  const { speech, bytes: speechBytes } = await deps.speechFiles.report(look.survey);
  const { totals, ...rest } = diskReport({
    ...look,
    inventory: deps.inventory.entries(),
    desired: deps.store.current().document,
    loaded: listed.filter(({ value }) => value !== "unloaded").map(({ id }) => id),
    lastUsed: deps.lastUsed.entries(),
    totals: new Map([...deps.loop.totals()].map(([key, total]) => [modelOf(key), total])),
    freeBytes,
  });
  return { ...rest, speech, totals: { ...totals, speechBytes } };
}
