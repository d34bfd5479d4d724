// Context size, eject and remove, in the interface's own words.
import { ownSchemas } from "../../../schemas/routes/own.ts";
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
    schema: ownSchemas.setContextSize,
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
    schema: ownSchemas.ejectModel,
    handler: async ({ edits }: ModelRoutesDeps, request, reply) => {
      const { id } = await edits.eject(request.body.model, callOf(request, reply));
      return { ok: true, model: id };
    },
  }),
  route({
    method: "POST",
    url: "/api/remove-model",
    config: { errors: [...changeErrors, "cache_unwritable"] },
    schema: ownSchemas.removeModel,
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
