// The gateway's own operations on what lies in the model cache.
import { collectedSchema, collectQuerySchema, diskSchema } from "../disk.ts";
import { json, ok } from "./contents.ts";
import type { Operation } from "./operation.ts";

const common = { family: "own", key: "required" } as const;

export const diskOperations: readonly Operation[] = [
  {
    ...common,
    id: "disk",
    method: "GET",
    path: "/api/models/disk",
    summary: "What the models take on the disk",
    responses: [ok("Each model, and the sums.", json(diskSchema))],
    errors: ["cache_unwritable", "router_unavailable"],
  },
  {
    ...common,
    id: "collect",
    method: "POST",
    path: "/api/models/gc",
    summary: "Delete what serves nobody",
    description:
      "Superseded revisions, blobs that nothing links and unfinished downloads that nobody goes on with, of this gateway's only. With `dryRun=false` it is done.",
    query: collectQuerySchema,
    responses: [ok("What goes and why, or went.", json(collectedSchema))],
    errors: ["cache_unwritable", "suspended", "shutting_down", "wait_timeout", "state_unwritable"],
  },
];
