// The edits over HTTP: context size, eject, remove, and the RPC mode with its workers.
import {
  contextSizeSetSchema,
  ejectedSchema,
  modelRequestSchema,
  type RpcWorkersRequest,
  removedSchema,
  removeQuerySchema,
  rpcModeRequestSchema,
  rpcRosterSchema,
  rpcWorkersRequestSchema,
  setContextSizeSchema,
} from "../../../schemas/admin.ts";
import { json, ok } from "../../../schemas/route.ts";
import type { Edits } from "../../commands/edits.ts";
import { callOf } from "../server/call.ts";
import { type Route, route } from "../server/route.ts";
import { changeErrors } from "../server/route-errors.ts";

export interface EditRoutesDeps {
  readonly edits: Pick<Edits, "setContextSize" | "eject" | "remove" | "setRpcMode" | "addWorkers" | "removeWorkers">;
}

const roster = ok("The workers that there are now.", json(rpcRosterSchema));

export const editRoutes: readonly Route<EditRoutesDeps>[] = [
  route({
    method: "POST",
    url: "/api/set-ctx-size",
    config: { errors: [...changeErrors, "not_supported"] },
    schema: {
      operationId: "setContextSize",
      summary: "Set the context size of a model",
      description: "Answers once the size is in force. A cached model that the document does not name is added to it.",
      body: setContextSizeSchema,
      response: ok("The size is in force.", json(contextSizeSetSchema)),
    },
    handler: async ({ edits }: EditRoutesDeps, request, reply) => {
      const { model, ctx_size } = request.body;
      const { id, ctxSize } = await edits.setContextSize(model, ctx_size, callOf(request, reply));
      return { ok: true, model: id, ctx_size: ctxSize };
    },
  }),
  route({
    method: "POST",
    url: "/api/eject-model",
    config: {
      errors: ["model_not_found", "router_unavailable", "engine_missing", "engine_failed", "wait_timeout"],
    },
    schema: {
      operationId: "ejectModel",
      summary: "Unload a model",
      description: "Waits for its answers under way. The files stay.",
      body: modelRequestSchema,
      response: ok("The model is not loaded.", json(ejectedSchema)),
    },
    handler: async ({ edits }: EditRoutesDeps, { body }) => {
      const { id } = await edits.eject(body.model);
      return { ok: true, model: id };
    },
  }),
  route({
    method: "POST",
    url: "/api/remove-model",
    config: { errors: [...changeErrors, "cache_unwritable"] },
    schema: {
      operationId: "removeModel",
      summary: "Delete the files of a model",
      description:
        "Unloads it, deletes all of its files, takes it out of document and preset, and has the router list its models again.",
      querystring: removeQuerySchema,
      body: modelRequestSchema,
      response: ok("The model is deleted.", json(removedSchema)),
    },
    handler: async ({ edits }: EditRoutesDeps, request, reply) => {
      const dryRun = request.query.dryRun === "true";
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
  route({
    method: "POST",
    url: "/api/rpc/mode",
    config: { errors: changeErrors },
    schema: {
      operationId: "setRpcMode",
      summary: "Turn RPC mode on or off",
      description: "`single`: this machine only; `rpc`: with the workers.",
      body: rpcModeRequestSchema,
      response: ok("The mode is in force.", json(rpcRosterSchema)),
    },
    handler: async ({ edits }: EditRoutesDeps, request, reply) => ({
      ok: true,
      ...(await edits.setRpcMode(request.body.mode, callOf(request, reply))),
    }),
  }),
  route({
    method: "POST",
    url: "/api/rpc/workers",
    config: { errors: changeErrors },
    schema: {
      operationId: "addWorkers",
      summary: "Add RPC workers",
      body: rpcWorkersRequestSchema,
      response: roster,
    },
    handler: async ({ edits }: EditRoutesDeps, request, reply) => ({
      ok: true,
      ...(await edits.addWorkers(workersOf(request.body), callOf(request, reply))),
    }),
  }),
  route({
    method: "POST",
    url: "/api/rpc/workers/remove",
    config: { errors: changeErrors },
    schema: {
      operationId: "removeWorkers",
      summary: "Remove RPC workers",
      body: rpcWorkersRequestSchema,
      response: roster,
    },
    handler: async ({ edits }: EditRoutesDeps, request, reply) => ({
      ok: true,
      ...(await edits.removeWorkers(workersOf(request.body), callOf(request, reply))),
    }),
  }),
];

function workersOf({ workers, worker }: RpcWorkersRequest): readonly string[] {
  return workers ?? (worker === undefined ? [] : [worker]);
}
