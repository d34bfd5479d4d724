// Status: the report, the two probes of supervisors, the metrics, and the description of the API.
import { livezSchema, openApiSchema, readyzSchema } from "../../../schemas/desired.ts";
import { json, ok, textSchema } from "../../../schemas/route.ts";
import { shortStatusSchema, statusSchema } from "../../../schemas/status.ts";
import type { Catalog } from "../../catalog/catalog.ts";
import type { Instances } from "../../engines/llama/instances.ts";
import { memoryOf } from "../../engines/process/memory.ts";
import { type ByDevice, needBody } from "../../memory/need.ts";
import { type MeteredParts, scrapedFrom } from "../../metrics/samples.ts";
import { contentType, metricsText } from "../../metrics/text.ts";
import { vllmText } from "../../metrics/vllm.ts";
import type { Scheduler } from "../../scheduler/scheduler.ts";
import type { SlotsView } from "../../scheduler/state/placed.ts";
import type { Settings } from "../../settings/settings.ts";
import { finding, notServing } from "../../status/finding.ts";
import { type StatusReport, shortReport } from "../../status/report.ts";
import { routesOf } from "../server/route.ts";

/** Nothing is known yet. */
export const firstLook = { reason: "Starting", message: "the first pass is not complete" } as const;

/** Gateways with the same document send the same. */
const documentHeader = "x-document-hash";

export interface StatusRoutesDeps {
  readonly catalog: Pick<Catalog, "find" | "view">;
  readonly router: { readonly instances: Pick<Instances, "get"> };
  readonly scheduler: Pick<Scheduler, "slots">;
  /** The model's own id, by the router's. */
  readonly idOf: (upstreamId: string) => string;
  readonly status: () => StatusReport;
  /** The gateway is told to stop: it may take requests for a while yet. */
  readonly leaving: AbortSignal;
  readonly meters: MeteredParts;
  readonly metricsNames: Settings["metricsNames"];
}

const { get } = routesOf<StatusRoutesDeps>();

export const statusRoutes = [
  get("/status", {
    operationId: "status",
    summary: "Get status",
    response: ok("The whole report, or what may be seen without a license key.", {
      anyOf: [statusSchema, shortStatusSchema],
    }),
    config: { licenseKey: "short" },
    handler: async (deps, request) => {
      const report = deps.status();
      return request.keyScope !== null ? withRuntimes(report, deps) : shortReport(report);
    },
  }),
  get("/livez", {
    operationId: "live",
    summary: "Check whether the gateway runs",
    response: ok("It runs.", livezSchema),
    config: { licenseKey: "none", probe: true },
    handler: () => ({ status: "ok" }),
  }),
  get("/readyz", {
    operationId: "ready",
    summary: "Check whether chats can be served",
    response: {
      ...ok("Chats can be served.", readyzSchema),
      503: { description: "Chats cannot be served yet, or no longer.", ...json(readyzSchema) },
    },
    config: { licenseKey: "none", probe: true },
    handler: ({ status, leaving }, _request, reply) => {
      const report = status();
      void reply.header(documentHeader, report.documentHash);
      const problem = leaving.aborted ? finding("Ready", "ShuttingDown") : problemIn(report);
      if (!problem) return { status: "ok", reason: "Serving", message: "chats can be served" };
      void reply.code(503);
      return { status: "unready", reason: problem.reason, message: problem.message };
    },
  }),
  get("/metrics", {
    operationId: "metrics",
    summary: "Get metrics for Prometheus",
    response: ok("Gauges, counters and histograms.", { content: { "text/plain": { schema: textSchema } } }),
    config: { licenseKey: "network" },
    handler: ({ status, meters, metricsNames }, _request, reply) => {
      const { samples, load } = scrapedFrom(status(), meters);
      const further = metricsNames === "vllm" ? vllmText(load, Date.now() / 1000) : "";
      return reply.type(contentType).send(metricsText(samples) + further);
    },
  }),
  get("/openapi.json", {
    operationId: "openapi",
    summary: "Get this description",
    response: ok("An OpenAPI document.", openApiSchema),
    handler: (_deps, { server }) => server.openApi(),
  }),
];

function problemIn({ conditions }: StatusReport): { readonly reason: string; readonly message: string } | null {
  return conditions.length === 0 ? firstLook : (notServing(conditions) ?? null);
}

type Runtime = StatusReport["models"][number]["runtime"];

async function withRuntimes(report: StatusReport, deps: StatusRoutesDeps): Promise<StatusReport> {
  const slots = deps.scheduler.slots();
  const models = report.models.map(async (model) => ({ ...model, runtime: await runtimeOf(model.id, slots, deps) }));
  return { ...report, models: await Promise.all(models) };
}

const noBytes: ByDevice = new Map();

async function runtimeOf(
  name: string,
  slots: SlotsView,
  { catalog, router, idOf }: StatusRoutesDeps,
): Promise<NonNullable<Runtime> | null> {
  const found = catalog.find(name);
  const view = found && catalog.view(found.id);
  if (!view) return null;
  const { model, contextLength, status, need } = view;
  const needed = need();
  const takes = slots.takes(model.upstreamId);
  const evicts = takes ? [] : slots.evicts(model.upstreamId, needed?.bytes ?? noBytes);
  const pid = router.instances.get(model.upstreamId)?.pid ?? null;
  return {
    bytes: model.bytes,
    contextLength,
    state: status,
    pid,
    memoryBytes: pid === null ? null : await memoryOf(pid),
    need: needed && needBody(needed),
    takes: takes && Object.fromEntries(takes),
    evicts: evicts && evicts.map(idOf),
  };
}
