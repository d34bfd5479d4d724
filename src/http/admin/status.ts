// Status: the report, the two probes of supervisors, and the journal as it grows.

import type { FastifyReply, FastifyRequest } from "fastify";
import { eventDataSchema, eventsQuerySchema, livezSchema, readyzSchema } from "../../../schemas/desired.ts";
import { events, json, ok } from "../../../schemas/route.ts";
import { shortStatusSchema, statusSchema } from "../../../schemas/status.ts";
import { notServing } from "../../status/conditions.ts";
import { finding } from "../../status/finding.ts";
import { type StatusReport, shortReport } from "../../status/report.ts";
import { type Route, route } from "../server/route.ts";

const firstLook = { reason: "Starting", message: "the first pass is not complete" } as const;

/** ms. A report on 2000 models takes 10 ms to make, and requests for it need no license key. */
const strangersReportAge = 500;

export interface StatusRoutesDeps {
  readonly reportFor: (request: FastifyRequest) => StatusReport;
  /** The gateway stops. */
  readonly stopping: AbortSignal;
  readonly streamEvents: (request: FastifyRequest, reply: FastifyReply) => void;
}

/** The report for a request; without a license key it may be half a second old. */
export function createReports(status: () => StatusReport, now: () => number): StatusRoutesDeps["reportFor"] {
  let last: { readonly report: StatusReport; readonly at: number } | undefined;
  return ({ keyScope }) => {
    const at = now();
    if (keyScope !== null || !last || Math.abs(at - last.at) >= strangersReportAge) last = { report: status(), at };
    return last.report;
  };
}

export const statusRoutes: readonly Route<StatusRoutesDeps>[] = [
  route({
    method: "GET",
    url: "/status",
    config: { licenseKey: "short" },
    schema: {
      operationId: "status",
      summary: "Get status",
      response: ok(
        "The whole report, or what may be seen without a license key.",
        json({ anyOf: [statusSchema, shortStatusSchema] }),
      ),
    },
    handler: ({ reportFor }: StatusRoutesDeps, request) => {
      const report = reportFor(request);
      return request.keyScope !== null ? report : shortReport(report);
    },
  }),
  route({
    method: "GET",
    url: "/livez",
    config: { licenseKey: "none", probe: true },
    schema: {
      operationId: "live",
      summary: "Check whether the gateway runs",
      response: ok("It runs.", json(livezSchema)),
    },
    handler: () => ({ status: "ok" }),
  }),
  route({
    method: "GET",
    url: "/readyz",
    config: { licenseKey: "none", probe: true },
    schema: {
      operationId: "ready",
      summary: "Check whether chats can be served",
      response: {
        ...ok("Chats can be served.", json(readyzSchema)),
        503: { description: "Chats cannot be served yet, or no longer.", ...json(readyzSchema) },
      },
    },
    handler: ({ reportFor, stopping }: StatusRoutesDeps, request, reply) => {
      // Before the report, which requests without a key share for a while.
      if (stopping.aborted) {
        void reply.code(503);
        const { reason, message } = finding("Ready", "ShuttingDown");
        return { status: "unready", reason, message };
      }
      const { conditions } = reportFor(request);
      const problem = conditions.length === 0 ? firstLook : notServing(conditions);
      if (!problem) return { status: "ok", reason: "Serving", message: "chats can be served" };
      void reply.code(503);
      return { status: "unready", reason: problem.reason, message: problem.message };
    },
  }),
];

export const eventsRoute: Route<StatusRoutesDeps> = route({
  method: "GET",
  url: "/api/events",
  exposeHeadRoute: false,
  config: { endless: true },
  schema: {
    operationId: "events",
    summary: "Stream events",
    description:
      "With `Last-Event-ID` the events after it come first, as far as they are kept: of the progress of an action only the latest, of all others the last 1000. An event of type `reset` comes before them where some are missing, or the id is of another run of the gateway: read the status again then.",
    querystring: eventsQuerySchema,
    headers: { "Last-Event-ID": "The id of the last event that was seen, `EPOCH-N`." },
    response: ok("One event after the other, until the client leaves.", events(eventDataSchema)),
  },
  handler: ({ streamEvents }: StatusRoutesDeps, request, reply) => streamEvents(request, reply),
});
