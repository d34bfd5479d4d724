// llama.cpp's routes that look into a model's process, or set the scales of its adapters. They load nothing, and do not count as
// a use. Saving and restoring of slots is not offered, as it names files.
import type { FastifyInstance, FastifyReply } from "fastify";
import { type LoraScales, loraScalesSchema } from "../../../schemas/openai.ts";
import { GatewayError } from "../../core/errors.ts";
import { askInstance } from "../proxy/ask-instance.ts";
import { clientLeft } from "../server/client-left.ts";
import { renderEngineError } from "../server/errors.ts";
import { parseJsonBody } from "../server/json-body.ts";
import { bodyCheck } from "../server/validate.ts";
import type { CompatRoutesDeps } from "./deps.ts";

interface Query {
  readonly Querystring: { readonly model?: string | string[] };
}

const loraScales = bodyCheck<LoraScales>(loraScalesSchema);

export function inspectionRoutes(app: FastifyInstance, deps: CompatRoutesDeps): void {
  app.get<Query>("/props", ({ query }, reply) =>
    isNamed(query.model) ? ask(deps, reply, query.model, { path: "/props", body: null }) : routerProps,
  );
  for (const path of ["/slots", "/lora-adapters"])
    app.get<Query>(path, ({ query }, reply) => ask(deps, reply, query.model, { path, body: null }));
  app.post<Query & { Body: Buffer | undefined }>("/lora-adapters", ({ query, body }, reply) => {
    // The engine answers success to any list, and takes what it cannot read for 0.
    const scales = loraScales(parseJsonBody(body));
    return ask(deps, reply, query.model, { path: "/lora-adapters", body: [Buffer.from(JSON.stringify(scales))] });
  });
}

function isNamed(model: Query["Querystring"]["model"]): boolean {
  return model !== undefined && model !== "";
}

/** The process's answer as it is. Errors: `invalid_request` where no model is named, or it is not loaded. */
async function ask(
  { scheduler, catalogue, upstream }: CompatRoutesDeps,
  reply: FastifyReply,
  name: Query["Querystring"]["model"],
  request: { readonly path: string; readonly body: readonly Buffer[] | null },
): Promise<FastifyReply> {
  if (typeof name !== "string" || !isNamed(name)) {
    const message = Array.isArray(name) ? "model is given twice" : "model is missing: name it as ?model=";
    throw new GatewayError("invalid_request", message, { param: "model" });
  }
  const instance = scheduler.peek(catalogue.resolve(name).upstreamId);
  // As the engine's router answers where it is told not to load.
  if (!instance) throw new GatewayError("invalid_request", "model is not loaded", { param: "model" });
  const { status, text } = await askInstance(upstream, instance, request, [clientLeft(reply)]);
  if (status === 200) return reply.type("application/json; charset=utf-8").send(text);
  const error = renderEngineError("compat", status, text);
  return reply.code(error.status).send(error.body);
}

/** What the engine's router says of itself, but for what is not so here: it is this gateway that limits and loads. */
const routerProps = {
  role: "router",
  models_autoload: true,
  model_alias: "model-gateway",
  model_path: "none",
  default_generation_settings: { params: null, n_ctx: 0 },
  ui_settings: {},
  cors_proxy_enabled: false,
} as const;
