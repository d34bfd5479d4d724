// llama.cpp's routes that look into a model's process, or set the scales of its adapters. They load nothing, and do not count as
// a use. Saving and restoring of slots is not offered, as it names files.
import type { FastifyReply } from "fastify";
import { engineAnswerSchema, loraScalesSchema, successSchema } from "../../../schemas/openai.ts";
import { ok } from "../../../schemas/route.ts";
import { GatewayError } from "../../core/errors.ts";
import { askInstance } from "../../engines/llama/ask-instance.ts";
import { clientLeft } from "../server/call.ts";
import { renderEngineError } from "../server/errors.ts";
import { parseJsonBody } from "../server/json-body.ts";
import { type CompatRoutesDeps, get, post } from "./generations.ts";

const model = { type: "string", minLength: 1 } as const;
const modelQuery = { type: "object", required: ["model"], properties: { model } } as const;
const answer = ok("The engine's answer.", engineAnswerSchema);
const errors = ["invalid_request", "model_not_found", "upstream_failed"] as const;

const look = (url: string, operationId: string, summary: string) =>
  get(url, {
    operationId,
    summary,
    querystring: modelQuery,
    response: answer,
    config: { errors: [...errors, "not_supported"] },
    handler: (deps, { query }, reply) => ask(deps, reply, query.model, { path: url, body: null }),
  });

export const inspectionRoutes = [
  get("/props", {
    config: { scope: "chat", errors },
    operationId: "props",
    summary: "Get the properties of the router or of a loaded model",
    querystring: {
      type: "object",
      properties: { model: { type: "string", description: "Without it: the router." } },
    },
    response: answer,
    handler: (deps, { query: { model = "" } }, reply) =>
      model === "" ? routerProps : ask(deps, reply, model, { path: "/props", body: null }),
  }),
  look("/slots", "slots", "Get the parallel slots of a loaded model"),
  look("/lora-adapters", "loraAdapters", "List the adapters of a loaded model"),
  post("/lora-adapters", {
    config: { errors },
    operationId: "setLoraScales",
    summary: "Set the scales of a loaded model's adapters",
    description: "For all requests to the model, until it is unloaded.",
    querystring: modelQuery,
    // The engine answers success to any list, and takes what it cannot read for 0.
    body: loraScalesSchema,
    response: ok("The scales are set.", successSchema),
    parse: parseJsonBody,
    handler: (deps, { query, body }, reply) =>
      ask(deps, reply, query.model, { path: "/lora-adapters", body: [Buffer.from(JSON.stringify(body))] }),
  }),
];

/** The process's answer as it is. Errors: `invalid_request` where the model is not loaded. */
async function ask(
  { scheduler, catalog, upstream }: CompatRoutesDeps,
  reply: FastifyReply,
  name: string,
  request: { readonly path: string; readonly body: readonly Buffer[] | null },
): Promise<FastifyReply> {
  const instance = scheduler.peek(catalog.resolve(name).upstreamId);
  // As the engine's router answers with autoload off.
  if (!instance) throw new GatewayError("invalid_request", "model is not loaded", { param: "model" });
  const { status, text } = await askInstance(upstream, instance, request, clientLeft(reply));
  if (status === 200) return reply.type("application/json; charset=utf-8").send(text);
  const error = renderEngineError("compat", status, text);
  return reply.code(error.status).send(error.body);
}

/** What the engine's router reports of itself, except what differs here: it is this gateway that limits and loads. */
const routerProps = {
  role: "router",
  models_autoload: true,
  model_alias: "model-gateway",
  model_path: "none",
  default_generation_settings: { params: null, n_ctx: 0 },
  ui_settings: {},
  cors_proxy_enabled: false,
} as const;
