// Context size, eject and remove, in the interface's own words.
import {
  contextSizeSetSchema,
  ejectedSchema,
  modelRequestSchema,
  removedSchema,
  removeQuerySchema,
  setContextSizeSchema,
} from "../../../schemas/admin.ts";
import { json, ok } from "../../../schemas/route.ts";
import type { Edits } from "../../commands/edits.ts";
import { callOf } from "../server/call.ts";
import { type Route, route } from "../server/route.ts";
import { changeErrors } from "../server/route-errors.ts";

export interface ModelRoutesDeps {
  readonly edits: Pick<Edits, "setContextSize" | "eject" | "remove">;
}

export const modelRoutes: readonly Route<ModelRoutesDeps>[] = [
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
    handler: async ({ edits }: ModelRoutesDeps, request, reply) => {
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
    handler: async ({ edits }: ModelRoutesDeps, request, reply) => {
      const { id } = await edits.eject(request.body.model, callOf(request, reply));
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
    handler: async ({ edits }: ModelRoutesDeps, request, reply) => {
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
];
