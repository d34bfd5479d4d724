// How everything is: the report, the two questions that supervisors ask, and the journal as it grows.
import type { FastifyInstance, FastifyRequest } from "fastify";
import { steadyNow } from "../../core/steady.ts";
import { notServing } from "../../status/conditions.ts";
import { finding } from "../../status/finding.ts";
import type { Journal } from "../../status/journal.ts";
import { type StatusReport, shortReport } from "../../status/report.ts";
import { createEventStreams } from "./events.ts";

const firstLook = { reason: "Starting", message: "the first look at the world is under way" } as const;

/** ms. A report on 2000 models takes 10 ms to make, and a stranger may ask for it without end. */
const strangersReportAge = 500;

export interface StatusRoutesDeps {
  readonly status: () => StatusReport;
  readonly journal: Journal;
  /** The gateway stops. */
  readonly stopping: AbortSignal;
  /** Event streams end. */
  readonly cutOff: AbortSignal;
  /** Event streams at once. */
  readonly eventListeners: number;
  readonly now?: () => number;
}

export function statusRoutes(app: FastifyInstance, deps: StatusRoutesDeps): void {
  let last: { readonly report: StatusReport; readonly at: number } | undefined;
  const reportFor = ({ keyScope }: FastifyRequest): StatusReport => {
    const now = (deps.now ?? steadyNow)();
    if (keyScope !== null || !last || Math.abs(now - last.at) >= strangersReportAge)
      last = { report: deps.status(), at: now };
    return last.report;
  };

  app.get("/status", { config: { licenseKey: "short" } }, (request) => {
    const report = reportFor(request);
    return request.keyScope !== null ? report : shortReport(report);
  });
  app.get("/livez", { config: { licenseKey: "none", probe: true } }, () => ({ status: "ok" }));
  app.get("/readyz", { config: { licenseKey: "none", probe: true } }, (request, reply) => {
    // Before the report, which strangers share for a while.
    if (deps.stopping.aborted) {
      void reply.code(503);
      const { reason, message } = finding("Ready", "ShuttingDown");
      return { status: "unready", reason, message };
    }
    const { conditions } = reportFor(request);
    const problem = conditions.length === 0 ? firstLook : notServing(conditions);
    if (!problem) return { status: "ok", reason: "Serving", message: "chats can be served" };
    void reply.code(503);
    return { status: "unready", reason: problem.reason, message: problem.message };
  });
  const streamEvents = createEventStreams({ journal: deps.journal, most: deps.eventListeners, cutOff: deps.cutOff });
  app.get("/api/events", { exposeHeadRoute: false, config: { endless: true } }, streamEvents);
}
