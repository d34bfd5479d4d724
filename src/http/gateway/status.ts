// How everything is: the report, the two questions that supervisors ask, and the journal as it grows.
import type { FastifyInstance, FastifyRequest } from "fastify";
import { steadyNow } from "../../core/steady.ts";
import type { Journal } from "../../status/journal.ts";
import { type StatusReport, shortReport } from "../../status/report.ts";
import { streamEvents } from "./events.ts";

/** ms. A report on 2000 models takes 10 ms to make, and a stranger may ask for it without end. */
const strangersReportAge = 500;

export function statusRoutes(
  app: FastifyInstance,
  deps: { readonly status: () => StatusReport; readonly journal: Journal; readonly now?: () => number },
): void {
  let last: { readonly report: StatusReport; readonly at: number } | undefined;
  const reportFor = ({ isLicensed }: FastifyRequest): StatusReport => {
    const now = (deps.now ?? steadyNow)();
    if (isLicensed || !last || Math.abs(now - last.at) >= strangersReportAge) last = { report: deps.status(), at: now };
    return last.report;
  };

  app.get("/status", { config: { licenseKey: "short" } }, (request) => {
    const report = reportFor(request);
    return request.isLicensed ? report : shortReport(report);
  });
  app.get("/livez", { config: { licenseKey: "none" } }, () => ({ status: "ok" }));
  app.get("/readyz", { config: { licenseKey: "none" } }, (request, reply) => {
    const { gateway, conditions } = reportFor(request);
    const ready = conditions.find((condition) => condition.type === "Ready");
    void reply.code(gateway.ready ? 200 : 503);
    return {
      status: gateway.ready ? "ok" : "unready",
      reason: ready?.reason ?? "Starting",
      message: ready?.message ?? "the first look at the world is under way",
    };
  });
  app.get("/api/events", { exposeHeadRoute: false }, (request, reply) => streamEvents(deps.journal, request, reply));
}
