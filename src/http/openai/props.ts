// llama.cpp's properties of the router or of a model's process. The question loads nothing, and does not count as a use.
import type { FastifyReply } from "fastify";
import { engineAnswerSchema } from "../../../schemas/openai.ts";
import { ok } from "../../../schemas/route.ts";
import { GatewayError } from "../../core/errors.ts";
import { askInstance } from "../../engines/llama/ask-instance.ts";
import { clientLeft } from "../server/call.ts";
import { renderEngineError } from "../server/errors.ts";
import { type CompatRoutesDeps, get } from "./generations.ts";

export const propsRoute = get("/props", {
  config: { scope: "chat", errors: ["invalid_request", "model_not_found", "upstream_failed"] },
  operationId: "props",
  summary: "Get the properties of the router or of a loaded model",
  querystring: {
    type: "object",
    properties: { model: { type: "string", description: "Without it: the router." } },
  },
  response: ok("The engine's answer.", engineAnswerSchema),
  handler: (deps, { query: { model = "" } }, reply) => (model === "" ? routerProps : ask(deps, reply, model)),
});

/** The process's answer as it is. Errors: `invalid_request` where the model is not loaded. */
async function ask(
  { scheduler, catalog, upstream }: CompatRoutesDeps,
  reply: FastifyReply,
  name: string,
): Promise<FastifyReply> {
  const instance = scheduler.peek(catalog.resolve(name).upstreamId);
  // As the engine's router answers with autoload off.
  if (!instance) throw new GatewayError("invalid_request", "model is not loaded", { param: "model" });
  const { status, text } = await askInstance(upstream, instance, { path: "/props", body: null }, clientLeft(reply));
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
