// The edits over HTTP: context size, eject, bench, remove, and the RPC mode with its workers.
import {
  benchSchema,
  contextSizeSetSchema,
  ejectedSchema,
  modelRequestSchema,
  removedSchema,
  removeQuerySchema,
  rpcModeRequestSchema,
  rpcRosterSchema,
  rpcWorkersRequestSchema,
  setContextSizeSchema,
} from "../../../schemas/admin.ts";
import { ok } from "../../../schemas/route.ts";
import type { Edits } from "../../commands/edits.ts";
import { callOf, clientLeft } from "../server/call.ts";
import { routesOf } from "../server/route.ts";
import { changeErrors } from "../server/route-errors.ts";

export interface EditRoutesDeps {
  readonly edits: Pick<
    Edits,
    "setContextSize" | "eject" | "bench" | "remove" | "setRpcMode" | "addWorkers" | "removeWorkers"
  >;
}

const { post } = routesOf<EditRoutesDeps>();

export const editRoutes = [
  post("/api/set-ctx-size", {
    config: { errors: [...changeErrors, "not_supported"] },
    operationId: "setContextSize",
    summary: "Set the context size of a model",
    description: "Answers once the size is in force. A cached model that the document does not name is added to it.",
    body: setContextSizeSchema,
    response: ok("The size is in force.", contextSizeSetSchema),
    handler: async ({ edits }, request, reply) => {
      const { model, ctx_size } = request.body;
      const { id, ctxSize } = await edits.setContextSize(model, ctx_size, callOf(request, reply));
      return { ok: true, model: id, ctx_size: ctxSize };
    },
  }),
  post("/api/eject-model", {
    config: {
      errors: ["model_not_found", "router_unavailable", "engine_missing", "engine_failed", "wait_timeout"],
    },
    operationId: "ejectModel",
    summary: "Unload a model",
    description: "Waits for its answers under way. The files stay.",
    body: modelRequestSchema,
    response: ok("The model is not loaded.", ejectedSchema),
    handler: async ({ edits }, { body }) => {
      const { id } = await edits.eject(body.model);
      return { ok: true, model: id };
    },
  }),
  post("/api/bench-model", {
    config: {
      errors: ["model_not_found", "too_large", "engine_missing", "engine_refused", "engine_failed", "cancelled"],
    },
    operationId: "benchModel",
    summary: "Measure the speed of a model",
    description:
      "Unloads it as `eject-model` does and runs the engine's llama-bench with the model's settings; its requests wait meanwhile. Takes minutes; ends with its client.",
    body: modelRequestSchema,
    response: ok("What was measured.", benchSchema),
    handler: ({ edits }, { body }, reply) => edits.bench(body.model, clientLeft(reply)),
  }),
  post("/api/remove-model", {
    config: { errors: [...changeErrors, "cache_unwritable", "cache_read_only"] },
    operationId: "removeModel",
    summary: "Delete the files of a model",
    description:
      "Unloads it, deletes all of its files, takes it out of document and preset, and has the router list its models again.",
    querystring: removeQuerySchema,
    body: modelRequestSchema,
    response: ok("The model is deleted.", removedSchema),
    handler: async ({ edits }, request, reply) => {
      const dryRun = request.query.dryRun ?? false;
      const removed = await edits.remove(request.body.model, { ...callOf(request, reply), dryRun });
      return {
        ok: true,
        model: removed.id,
        deleted_files: removed.deletedFiles,
        freed_bytes: removed.freedBytes,
        removed_preset_section: removed.removedPresetSection,
      };
    },
  }),
  post("/api/rpc/mode", {
    config: { errors: changeErrors },
    operationId: "setRpcMode",
    summary: "Turn RPC mode on or off",
    description: "`single`: this machine only; `rpc`: with the workers.",
    body: rpcModeRequestSchema,
    response: ok("The mode is in force.", rpcRosterSchema),
    handler: async ({ edits }, request, reply) => ({
      ok: true,
      ...(await edits.setRpcMode(request.body.mode, callOf(request, reply))),
    }),
  }),
  workersRoute("", "addWorkers", "Add RPC workers"),
  workersRoute("/remove", "removeWorkers", "Remove RPC workers"),
];

function workersRoute(path: string, operationId: "addWorkers" | "removeWorkers", summary: string) {
  return post(`/api/rpc/workers${path}`, {
    operationId,
    summary,
    body: rpcWorkersRequestSchema,
    response: ok("The workers that there are now.", rpcRosterSchema),
    config: { errors: changeErrors },
    handler: async ({ edits }, request, reply) => {
      const { worker, workers = worker === undefined ? [] : [worker] } = request.body;
      return { ok: true, ...(await edits[operationId](workers, callOf(request, reply))) };
    },
  });
}
