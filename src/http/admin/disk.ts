// What the models take on the disk, and having deleted what of it serves nobody.
import type { FastifyInstance } from "fastify";
import { type CollectQuery, collectQuerySchema } from "../../../schemas/disk.ts";
import type { Inventory } from "../../cache/inventory/inventory.ts";
import { diskReport } from "../../cache/report/disk-report.ts";
import { type CollectDeps, createCollect } from "../../commands/collect.ts";
import { GatewayError } from "../../core/errors.ts";
import { isJsonObject } from "../../core/merge-patch.ts";
import type { DesiredStore } from "../../desired/store.ts";
import type { Collector } from "../../execute/cache-gc.ts";
import type { SpeechStore } from "../../execute/speech-files.ts";
import type { Loop } from "../../reconcile/loop.ts";
import type { LastUsed } from "../../state/last-used.ts";
import { callOf } from "../server/call.ts";
import { queryCheck } from "../server/validate.ts";

export interface DiskRoutesDeps extends CollectDeps {
  readonly store: DesiredStore;
  readonly loop: Pick<Loop, "last" | "sizes">;
  readonly collector: Collector;
  readonly speechFiles: Pick<SpeechStore, "report">;
  readonly inventory: Pick<Inventory, "entries">;
  readonly lastUsed: Pick<LastUsed, "entries">;
}

const query = queryCheck<CollectQuery>(collectQuerySchema);

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

export function diskRoutes(app: FastifyInstance, deps: DiskRoutesDeps): void {
  const collect = createCollect(deps);

  app.get("/api/models/disk", async () => {
    const look = await deps.collector.look();
    const pass = deps.loop.last();
    if (!pass) throw new GatewayError("router_unavailable", "the first look at the world is under way");
    const { router, freeBytes } = pass.observed;
    const listed = router.models.state === "known" ? router.models.value : [];
    const { speech, bytes: speechBytes } = await deps.speechFiles.report(look.survey);
    const report = diskReport({
      ...look,
      inventory: deps.inventory.entries(),
      desired: deps.store.current().document,
      loaded: listed.filter(({ value }) => value !== "unloaded").map(({ id }) => id),
      lastUsed: deps.lastUsed.entries(),
      totals: new Map([...deps.loop.sizes.totals()].map(([key, total]) => [modelOf(key), total])),
      freeBytes,
    });
    return { ...report, speech, totals: { ...report.totals, speechBytes } };
  });

  app.post("/api/models/gc", { config: { query: ["dryRun"] } }, async (request, reply) => {
    const { dryRun } = query(request.query);
    refuseBody(request.body);
    if (dryRun !== "false") return { dryRun: true, ...(await collect.preview()) };
    return { dryRun: false, ...(await collect.run(callOf(request, reply))) };
  });
}
