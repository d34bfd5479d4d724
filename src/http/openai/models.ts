// The list of models and its entries, and loading and unloading in llama.cpp's words.
import type { FastifyInstance } from "fastify";
import type { ModelView } from "../../catalog/catalog.ts";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import type { CachedModel } from "../../plan/observed.ts";
import { callOf } from "../server/call.ts";
import type { CompatRoutesDeps } from "./deps.ts";
import { readModelName } from "./request.ts";

export function modelRoutes(app: FastifyInstance, deps: CompatRoutesDeps): void {
  const { catalogue, edits } = deps;
  app.get("/models", () => ({ object: "list", data: catalogue.list().map((view) => modelEntry(view)) }));

  // Answered once the request is taken, as llama.cpp does: whoever asks watches the list.
  app.post<{ Body: Buffer | undefined }>("/models/load", (request) => {
    void load(deps, catalogue.resolve(readModelName(request.body)));
    return { success: true };
  });
  app.post<{ Body: Buffer | undefined }>("/models/unload", async (request, reply) => {
    const { id } = catalogue.resolve(readModelName(request.body));
    await edits.eject(id, callOf(request, reply));
    return { success: true };
  });
}

async function load({ scheduler, cutOff, onFailure }: CompatRoutesDeps, model: CachedModel): Promise<void> {
  try {
    scheduler.resetBackoff(model.upstreamId);
    const lease = await scheduler.acquire(model.upstreamId, cutOff);
    lease.release();
  } catch (error) {
    if (!cutOff.aborted) onFailure(toGatewayError(error), model.id);
  }
}

/** By any name; ids have slashes, so it takes the rest of the path. */
export function modelRoute(app: FastifyInstance, { catalogue }: CompatRoutesDeps): void {
  app.get<{ Params: { "*": string } }>("/models/*", (request) => {
    const { id } = catalogue.resolve(request.params["*"]);
    const view = catalogue.view(id);
    if (!view) throw new GatewayError("model_not_found", `model '${id}' not found`);
    return modelEntry(view);
  });
}

/** The OpenAI fields, the interface's own, and those of llama.cpp's that web front ends read. */
function modelEntry({ model, aliases, contextLength, loaded, status }: ModelView): object {
  const meta = {
    ...(model.nCtxTrain === null ? {} : { n_ctx_train: model.nCtxTrain }),
    ...(contextLength === null ? {} : { n_ctx: contextLength }),
  };
  return {
    id: model.id,
    object: "model",
    created: Math.floor(model.modifiedAt / 1000),
    owned_by: model.repo.slice(0, model.repo.indexOf("/")),
    ...(contextLength === null ? {} : { context_length: contextLength }),
    ...(model.nCtxTrain === null ? {} : { n_ctx_train: model.nCtxTrain }),
    loaded,
    aliases: [...new Set([...aliases, ...model.aliases])],
    status: { value: status },
    meta,
  };
}
