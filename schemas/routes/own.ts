// Schemas of the gateway's own routes.
import {
  contextSizeSetSchema,
  ejectedSchema,
  hubFilesQuerySchema,
  hubFilesSchema,
  hubReposSchema,
  hubSearchQuerySchema,
  modelRequestSchema,
  removedSchema,
  removeQuerySchema,
  rpcModeRequestSchema,
  rpcRosterSchema,
  rpcWorkersRequestSchema,
  setContextSizeSchema,
} from "../admin.ts";
import {
  changeQuerySchema,
  desiredSchema,
  documentBodySchema,
  eventDataSchema,
  eventsQuerySchema,
  livezSchema,
  mergePatchSchema,
  openApiSchema,
  readyzSchema,
  reconciledSchema,
  reconcileQuerySchema,
} from "../desired.ts";
import { collectedSchema, collectQuerySchema, diskSchema } from "../disk.ts";
import { planSchema } from "../plan.ts";
import { contents, events, json, ok, textSchema } from "../route.ts";
import { shortStatusSchema, statusSchema } from "../status.ts";

const changing = {
  querystring: changeQuerySchema,
  headers: { "If-Match": "The ETag of the document that the change is meant for; without it, any." },
  response: ok("The document after the change; with `dryRun` its plan.", json({ anyOf: [desiredSchema, planSchema] })),
} as const;

const roster = ok("The workers that there are now.", json(rpcRosterSchema));

export const ownSchemas = {
  status: {
    operationId: "status",
    summary: "Get status",
    response: ok(
      "The whole report, or what may be seen without a license key.",
      json({ anyOf: [statusSchema, shortStatusSchema] }),
    ),
  },
  live: {
    operationId: "live",
    summary: "Check whether the gateway runs",
    response: ok("It runs.", json(livezSchema)),
  },
  ready: {
    operationId: "ready",
    summary: "Check whether chats can be served",
    response: {
      ...ok("Chats can be served.", json(readyzSchema)),
      503: { description: "Chats cannot be served yet, or no longer.", ...json(readyzSchema) },
    },
  },
  events: {
    operationId: "events",
    summary: "Stream events",
    description:
      "With `Last-Event-ID` the events after it come first, as far as they are kept: of the progress of an action only the latest, of all others the last 1000. An event of type `reset` comes before them where some are missing, or the id is of another run of the gateway: read the status again then.",
    querystring: eventsQuerySchema,
    headers: { "Last-Event-ID": "The id of the last event that was seen, `EPOCH-N`." },
    response: ok("One event after the other, until the client leaves.", events(eventDataSchema)),
  },
  metrics: {
    operationId: "metrics",
    summary: "Get metrics for Prometheus",
    response: ok("Gauges.", { content: { "text/plain": { schema: textSchema } } }),
  },
  desired: {
    operationId: "desired",
    summary: "Get the document",
    description: "The ETag goes into `If-Match` of a change.",
    response: ok("The document.", json(desiredSchema)),
  },
  putDesired: {
    operationId: "putDesired",
    summary: "Replace the document",
    ...changing,
    // Checked by the store, which names what is wrong in the document's own terms.
    body: json(documentBodySchema),
  },
  patchDesired: {
    operationId: "patchDesired",
    summary: "Change a part of the document",
    ...changing,
    body: contents(json(mergePatchSchema), {
      content: { "application/merge-patch+json": { schema: mergePatchSchema } },
    }),
  },
  plan: {
    operationId: "plan",
    summary: "Get the current plan",
    response: ok("The plan.", json(planSchema)),
  },
  reconcile: {
    operationId: "reconcile",
    summary: "Reconcile now and reset backoffs",
    querystring: reconcileQuerySchema,
    response: ok("Reconciling has begun, or with `wait` ended.", json(reconciledSchema)),
  },
  openapi: {
    operationId: "openapi",
    summary: "Get this description",
    response: ok("An OpenAPI document.", json(openApiSchema)),
  },
  setContextSize: {
    operationId: "setContextSize",
    summary: "Set the context size of a model",
    description: "Answers once the size is in force. A cached model that the document does not name is added to it.",
    body: setContextSizeSchema,
    response: ok("The size is in force.", json(contextSizeSetSchema)),
  },
  ejectModel: {
    operationId: "ejectModel",
    summary: "Unload a model",
    description: "Waits for its answers under way. The files stay.",
    body: modelRequestSchema,
    response: ok("The model is not loaded.", json(ejectedSchema)),
  },
  removeModel: {
    operationId: "removeModel",
    summary: "Delete the files of a model",
    description:
      "Unloads it, deletes all of its files, takes it out of document and preset, and has the router list its models again.",
    querystring: removeQuerySchema,
    body: modelRequestSchema,
    response: ok("The model is deleted.", json(removedSchema)),
  },
  setRpcMode: {
    operationId: "setRpcMode",
    summary: "Turn RPC mode on or off",
    description: "`single`: this machine only; `rpc`: with the workers.",
    body: rpcModeRequestSchema,
    response: ok("The mode is in force.", json(rpcRosterSchema)),
  },
  addWorkers: {
    operationId: "addWorkers",
    summary: "Add RPC workers",
    body: rpcWorkersRequestSchema,
    response: roster,
  },
  removeWorkers: {
    operationId: "removeWorkers",
    summary: "Remove RPC workers",
    body: rpcWorkersRequestSchema,
    response: roster,
  },
  searchHub: {
    operationId: "searchHub",
    summary: "Search the hub for GGUF repositories",
    querystring: hubSearchQuerySchema,
    response: ok("The repositories found.", json(hubReposSchema)),
  },
  repoFiles: {
    operationId: "repoFiles",
    summary: "List the GGUF files of a repository",
    querystring: hubFilesQuerySchema,
    response: ok("All of them, under the names they have there.", json(hubFilesSchema)),
  },
  disk: {
    operationId: "disk",
    summary: "Get the disk usage of models",
    response: ok("Each model, and the sums.", json(diskSchema)),
  },
  collect: {
    operationId: "collect",
    summary: "Delete unused files of the cache",
    description:
      "Superseded revisions, blobs without a link and abandoned downloads, of this gateway's only. By default nothing is deleted: `dryRun=false` deletes.",
    querystring: collectQuerySchema,
    response: ok("Each item with its reason and size.", json(collectedSchema)),
  },
} as const;
