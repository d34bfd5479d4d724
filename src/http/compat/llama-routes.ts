// llama.cpp's own routes, which its web page and other front ends look for beside the compatible family.
import type { FastifyInstance } from "fastify";
import { GatewayError } from "../../core/errors.ts";
import { clientLeft } from "../client-left.ts";
import { installFamily } from "../family.ts";
import type { CompatRoutesDeps } from "./deps.ts";
import { generationRoutes, llamaGenerations } from "./generations.ts";
import { modelRoutes } from "./models.ts";
import { readProps } from "./props.ts";

export function llamaRoutes(app: FastifyInstance, deps: CompatRoutesDeps): void {
  installFamily(app, "compat");
  generationRoutes(app, deps, llamaGenerations);
  modelRoutes(app, deps);
  app.get("/health", () => {
    if (!deps.routerReady()) throw new GatewayError("router_unavailable", "the router is not running");
    return { status: "ok" };
  });
  app.get<{ Querystring: { model?: string | string[] } }>("/props", async (request, reply) => {
    const { model } = request.query;
    if (model === undefined || model === "") return routerProps;
    if (typeof model !== "string")
      throw new GatewayError("invalid_request", "model is given twice", { param: "model" });
    const text = await readProps(deps, deps.catalogue.resolve(model), clientLeft(reply));
    return reply.type("application/json; charset=utf-8").send(text);
  });
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
