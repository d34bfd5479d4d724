// The gateway's own operations on itself: health, status, document, loop and journal.
import {
  changeQuerySchema,
  desiredSchema,
  documentBodySchema,
  eventDataSchema,
  eventsQuerySchema,
  livezSchema,
  mergePatchSchema,
  readyzSchema,
  reconciledSchema,
  reconcileQuerySchema,
} from "../desired.ts";
import { planSchema } from "../plan.ts";
import { shortStatusSchema, statusSchema } from "../status.ts";
import { body, events, json, ok, textSchema } from "./contents.ts";
import { changeErrors, pullErrors } from "./errors.ts";
import type { Operation } from "./operation.ts";

const openApiSchema = {
  title: "OpenApi",
  type: "object",
  required: ["openapi", "paths"],
  properties: { openapi: { type: "string" }, paths: { type: "object" } },
  examples: [{ openapi: "3.1.0", paths: {} }],
} as const;

const common = { family: "own", key: "required" } as const;

const ifMatch = {
  "If-Match": "The ETag of the document that the change is meant for; any where it is absent.",
} as const;

const changeResponse = ok(
  "The document as it is now; with `dryRun` the plan for it.",
  json({ anyOf: [desiredSchema, planSchema] }),
);

export const ownOperations: readonly Operation[] = [
  {
    ...common,
    id: "status",
    method: "GET",
    path: "/status",
    key: "short",
    summary: "How everything is",
    responses: [ok("The whole of it, or what a stranger may see.", json({ anyOf: [statusSchema, shortStatusSchema] }))],
    errors: [],
  },
  {
    ...common,
    id: "live",
    method: "GET",
    path: "/livez",
    key: "none",
    summary: "Whether the gateway runs",
    responses: [ok("It does.", json(livezSchema))],
    errors: [],
  },
  {
    ...common,
    id: "ready",
    method: "GET",
    path: "/readyz",
    key: "none",
    summary: "Whether chats can be served",
    responses: [
      ok("They can.", json(readyzSchema)),
      { status: 503, description: "Not yet, or no more.", content: [json(readyzSchema)] },
    ],
    errors: [],
  },
  {
    ...common,
    id: "metrics",
    method: "GET",
    path: "/metrics",
    summary: "How busy it is, for Prometheus",
    responses: [ok("Gauges.", { mediaType: "text/plain", schema: textSchema })],
    errors: [],
  },
  {
    ...common,
    id: "desired",
    method: "GET",
    path: "/api/desired",
    summary: "The document",
    description: "The ETag goes into `If-Match` of a change.",
    responses: [ok("The document.", json(desiredSchema))],
    errors: [],
  },
  {
    ...common,
    id: "putDesired",
    method: "PUT",
    path: "/api/desired",
    summary: "Replace the document",
    query: changeQuerySchema,
    headers: ifMatch,
    request: body(json(documentBodySchema)),
    responses: [changeResponse],
    errors: [...pullErrors, "file_only", "precondition_failed", "source_missing"],
  },
  {
    ...common,
    id: "patchDesired",
    method: "PATCH",
    path: "/api/desired",
    summary: "Change a part of the document",
    query: changeQuerySchema,
    headers: ifMatch,
    request: body(json(mergePatchSchema), { mediaType: "application/merge-patch+json", schema: mergePatchSchema }),
    responses: [changeResponse],
    errors: [...pullErrors, "file_only", "precondition_failed", "source_missing"],
  },
  {
    ...common,
    id: "plan",
    method: "GET",
    path: "/api/plan",
    summary: "What will be done",
    responses: [ok("The plan.", json(planSchema))],
    errors: ["router_unavailable"],
  },
  {
    ...common,
    id: "reconcile",
    method: "POST",
    path: "/api/reconcile",
    summary: "Look and act now, also on what was given up",
    query: reconcileQuerySchema,
    responses: [ok("It is under way, or with `wait` done.", json(reconciledSchema))],
    errors: [...changeErrors, ...pullErrors, "source_missing"],
  },
  {
    ...common,
    id: "events",
    method: "GET",
    path: "/api/events",
    summary: "Stream events",
    description:
      "With `Last-Event-ID` the events after it come first, as far as they are kept: of the progress of an action only the latest, of all others the last 1000. An event of type `reset` comes before them where some are missing, or the id is of another run of the gateway: read the status again then.",
    query: eventsQuerySchema,
    headers: { "Last-Event-ID": "The id of the last event that was seen, `EPOCH-N`." },
    responses: [ok("One event after the other, without end.", events(eventDataSchema))],
    errors: [],
  },
  {
    ...common,
    id: "openapi",
    method: "GET",
    path: "/openapi.json",
    summary: "This description",
    responses: [ok("An OpenAPI document.", json(openApiSchema))],
    errors: [],
  },
  {
    ...common,
    id: "front",
    family: "front",
    method: "GET",
    path: "",
    key: "none",
    summary: "Who is there",
    responses: [ok("A word of greeting.", { mediaType: "text/plain", schema: textSchema })],
    errors: [],
  },
];
