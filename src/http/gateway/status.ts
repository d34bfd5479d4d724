// How everything is: the report, the two questions that supervisors ask, and the journal as it grows.
import type { FastifyInstance } from "fastify";
import type { Journal } from "../../status/journal.ts";
import { type StatusReport, shortReport } from "../../status/report.ts";
import { streamEvents } from "./events.ts";

export function statusRoutes(
  app: FastifyInstance,
  deps: { readonly status: () => StatusReport; readonly journal: Journal },
): void {
  app.get("/status", { config: { licenseKey: "short" } }, (request) => {
    const report = deps.status();
    return request.isLicensed ? report : shortReport(report);
  });
  app.get("/livez", { config: { licenseKey: "none" } }, () => ({ status: "ok" }));
  app.get("/readyz", { config: { licenseKey: "none" } }, (_request, reply) => {
    const { gateway, conditions } = deps.status();
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
