// The list of models and its entries, and loading and unloading in llama.cpp's words.
import {
  healthSchema,
  modelEntrySchema,
  modelListSchema,
  modelNameSchema,
  successSchema,
} from "../../../schemas/openai.ts";
import { ok } from "../../../schemas/route.ts";
import type { ModelView } from "../../catalog/catalog.ts";
import { GatewayError, toGatewayError } from "../../core/errors.ts";
import type { Variant } from "../../desired/document/document.ts";
import { needBody } from "../../memory/need.ts";
import type { CachedModel } from "../../plan/observed.ts";
import { parseJsonBody } from "../server/json-body.ts";
import { type CompatRoutesDeps, get, post } from "./generations.ts";

const chatScope = { scope: "chat" } as const;

export const modelRoutes = [
  get("/models", {
    config: chatScope,
    operationId: "models",
    summary: "List the models",
    response: ok("All of them.", modelListSchema),
    handler: ({ catalog }) => ({
      object: "list",
      data: catalog
        .list()
        .flatMap((view) => [modelEntry(view), ...view.variants.map((variant) => modelEntry(view, variant))]),
    }),
  }),
  post("/models/load", {
    config: { errors: ["model_not_found", "too_large"] },
    operationId: "loadModel",
    summary: "Load a model, as llama.cpp does",
    description: "Answers once the request is accepted, as llama.cpp does; the list shows when the model is loaded.",
    body: modelNameSchema,
    response: ok("The request is accepted.", successSchema),
    parse: parseJsonBody,
    handler: (deps, { body }) => {
      const model = deps.catalog.resolve(body.model);
      const refusal = deps.scheduler.tooLarge(model.upstreamId);
      if (refusal) throw refusal;
      void load(deps, model);
      return { success: true };
    },
  }),
  post("/models/unload", {
    config: {
      errors: ["model_not_found", "router_unavailable", "engine_missing", "engine_failed", "wait_timeout"],
    },
    operationId: "unloadModel",
    summary: "Unload a model, as llama.cpp does",
    body: modelNameSchema,
    response: ok("The model is not loaded.", successSchema),
    parse: parseJsonBody,
    handler: async ({ edits }, { body }) => {
      await edits.eject(body.model);
      return { success: true };
    },
  }),
];

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
export const modelRoute = get("/models/*", {
  config: { scope: "chat", errors: ["model_not_found"] },
  operationId: "model",
  summary: "Get a model",
  params: { model: { type: "string", description: "OWNER/NAME:TAG, its slash as it is or escaped." } },
  response: ok("The model.", modelEntrySchema),
  handler: ({ catalog }, { params }) => {
    const { model, variant } = catalog.named(params["*"] ?? "");
    const view = catalog.view(model.id);
    if (!view) throw new GatewayError("model_not_found", `model '${model.id}' not found`);
    return modelEntry(view, variant);
  },
});

/** llama.cpp's health check, which its clients look for with and without a version in the path. */
export const healthRoute = get("/health", {
  config: { scope: "chat", errors: ["router_unavailable"] },
  operationId: "health",
  summary: "Check whether models can answer",
  response: ok("They can.", healthSchema),
  handler: ({ routerReady }) => {
    if (!routerReady()) throw new GatewayError("router_unavailable", "the router is not running");
    return { status: "ok" };
  },
});

/** The OpenAI fields, the interface's own, and those of llama.cpp's that web front ends read. */
function modelEntry(view: ModelView, variant: Variant | null = null): object {
  const { model, aliases, contextLength, loaded, status, need } = view;
  const needed = need();
  const meta = {
    ...(model.nCtxTrain === null ? {} : { n_ctx_train: model.nCtxTrain }),
    ...(contextLength === null ? {} : { n_ctx: contextLength }),
    ...(needed === null ? {} : { memory: needBody(needed) }),
  };
  return {
    id: variant?.name ?? model.id,
    object: "model",
    created: Math.floor(model.modifiedAt / 1000),
    owned_by: model.repo.slice(0, model.repo.indexOf("/")),
    ...(contextLength === null ? {} : { context_length: contextLength }),
    ...(model.nCtxTrain === null ? {} : { n_ctx_train: model.nCtxTrain }),
    loaded,
    aliases: variant ? [] : [...new Set([...aliases, ...model.aliases])],
    ...(variant && { variant_of: model.id }),
    status: { value: status },
    meta,
  };
}
