// Disk use of the models, and deletion of what is unused.
import { collectedSchema, collectQuerySchema, diskSchema } from "../../../schemas/disk.ts";
import { json, ok } from "../../../schemas/route.ts";
import type { Inventory } from "../../cache/inventory/inventory.ts";
import { diskReport } from "../../cache/report/disk-report.ts";
import { previewOf } from "../../cache/report/garbage.ts";
import { type CollectDeps, collect } from "../../commands/in-force.ts";
import { GatewayError } from "../../core/errors.ts";
import type { DesiredStore } from "../../desired/store.ts";
import type { Collector } from "../../execute/cache-gc.ts";
import type { SpeechStore } from "../../execute/speech-files.ts";
import type { Loop } from "../../reconcile/loop.ts";
import type { LastUsed } from "../../state/last-used.ts";
import { clientLeft } from "../server/client-left.ts";
import { type Route, route } from "../server/route.ts";

export interface DiskRoutesDeps extends CollectDeps {
  readonly store: DesiredStore;
  readonly loop: Pick<Loop, "last" | "totals">;
  readonly collector: Collector;
  readonly speechFiles: Pick<SpeechStore, "report">;
  readonly inventory: Pick<Inventory, "entries">;
  readonly lastUsed: Pick<LastUsed, "entries">;
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
    schema: {
      operationId: "disk",
      summary: "Get the disk usage of models",
      response: ok("Each model, and the sums.", json(diskSchema)),
    },
    handler: report,
  }),
  route({
    method: "POST",
    url: "/api/models/gc",
    config: { errors: ["cache_unwritable", "suspended", "shutting_down", "wait_timeout", "state_unwritable"] },
    schema: {
      operationId: "collect",
      summary: "Delete unused files of the cache",
      description:
        "Superseded revisions, blobs without a link and abandoned downloads, of this gateway's only. By default nothing is deleted: `dryRun=false` deletes.",
      querystring: collectQuerySchema,
      response: ok("Each item with its reason and size.", json(collectedSchema)),
    },
    handler: async (deps: DiskRoutesDeps, { query: { dryRun } }, reply) => {
      if (dryRun !== "false") return { dryRun: true, ...previewOf((await deps.collector.look()).garbage) };
      return { dryRun: false, ...(await collect(deps, clientLeft(reply))) };
    },
  }),
];

async function report(deps: DiskRoutesDeps): Promise<object> {
  const look = await deps.collector.look();
  const pass = deps.loop.last();
  if (!pass) throw new GatewayError("router_unavailable", "the first pass is not complete");
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
