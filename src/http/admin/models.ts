// Context size, eject and remove, in the interface's own words.
import type { FastifyInstance } from "fastify";
import {
  type ModelRequest,
  modelRequestSchema,
  type RemoveQuery,
  removeQuerySchema,
  type SetContextSize,
  setContextSizeSchema,
} from "../../../schemas/admin.ts";
import type { Edits } from "../../commands/edits.ts";
import { callOf } from "../server/call.ts";
import { bodyCheck, queryCheck } from "../server/validate.ts";

const setContextSize = bodyCheck<SetContextSize>(setContextSizeSchema);
const modelRequest = bodyCheck<ModelRequest>(modelRequestSchema);
const removeQuery = queryCheck<RemoveQuery>(removeQuerySchema);

export function modelRoutes(app: FastifyInstance, edits: Pick<Edits, "setContextSize" | "eject" | "remove">): void {
  app.post("/api/set-ctx-size", async (request, reply) => {
    const { model, ctx_size } = setContextSize(request.body);
    const { id, ctxSize } = await edits.setContextSize(model, ctx_size, callOf(request, reply));
    return { ok: true, model: id, ctx_size: ctxSize };
  });
  app.post("/api/eject-model", async (request, reply) => {
    const { id } = await edits.eject(modelRequest(request.body).model, callOf(request, reply));
    return { ok: true, model: id };
  });
  app.post("/api/remove-model", { config: { query: ["dryRun"] } }, async (request, reply) => {
    const dryRun = removeQuery(request.query).dryRun === "true";
    const removed = await edits.remove(modelRequest(request.body).model, { ...callOf(request, reply), dryRun });
    return {
      ok: true,
      model: removed.id,
      deleted_files: removed.deletedFiles,
      freed_bytes: removed.freedBytes,
      removed_preset_section: removed.removedPresetSection,
    };
  });
}
