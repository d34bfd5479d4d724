// Disk use of the models, and deletion of what is unused.
import { collectedSchema, collectQuerySchema, diskSchema } from "../../../schemas/disk.ts";
import { ok } from "../../../schemas/route.ts";
import { diskReport } from "../../cache/report/disk-report.ts";
import { previewOf } from "../../cache/report/garbage.ts";
import { type CollectDeps, collect } from "../../commands/in-force.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Collector } from "../../execute/cache-gc.ts";
import type { Memory } from "../../memory/memory.ts";
import { needBody } from "../../memory/need.ts";
import type { Loop } from "../../reconcile/loop.ts";
import type { LastUsed } from "../../state/last-used.ts";
import { clientLeft } from "../server/call.ts";
import { routesOf } from "../server/route.ts";

export interface DiskRoutesDeps extends CollectDeps {
  readonly loop: Pick<Loop, "last" | "totals">;
  readonly collector: Collector;
  readonly lastUsed: Pick<LastUsed, "entries">;
  readonly memory: Pick<Memory, "known">;
}

/** In lower case. */
function modelOf(key: string): string {
  return key.slice(key.indexOf("/") + 1).toLowerCase();
}

const { get, post } = routesOf<DiskRoutesDeps>();

export const diskRoutes = [
  get("/api/models/disk", {
    config: { errors: ["cache_unwritable", "router_unavailable"] },
    operationId: "disk",
    summary: "Get the disk usage of models",
    response: ok("Each model, and the sums.", diskSchema),
    handler: report,
  }),
  post("/api/models/gc", {
    config: {
      errors: ["cache_unwritable", "cache_read_only", "suspended", "shutting_down", "wait_timeout", "state_unwritable"],
    },
    operationId: "collect",
    summary: "Delete unused files of the cache",
    description:
      "Superseded revisions, blobs without a link and abandoned downloads, of this gateway's only. By default nothing is deleted: `dryRun=false` deletes.",
    querystring: collectQuerySchema,
    response: ok("Each item with its reason and size.", collectedSchema),
    handler: async (deps, { query: { dryRun } }, reply) => {
      if (dryRun ?? true) return { dryRun: true, ...previewOf((await deps.collector.look()).garbage) };
      return { dryRun: false, ...(await collect(deps, clientLeft(reply))) };
    },
  }),
];

async function report(deps: DiskRoutesDeps): Promise<object> {
  const look = await deps.collector.look();
  const pass = deps.loop.last();
  if (!pass) throw new GatewayError("router_unavailable", "the first pass is not complete");
  return diskReport({
    ...look,
    lastUsed: deps.lastUsed.entries(),
    totals: new Map([...deps.loop.totals()].map(([key, total]) => [modelOf(key), total])),
    freeBytes: pass.observed.freeBytes,
    needOf: (upstreamId) => {
      const need = deps.memory.known(upstreamId);
      return need && needBody(need);
    },
  });
}
