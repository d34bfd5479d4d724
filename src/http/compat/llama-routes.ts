// llama.cpp's own model routes, which its web page and other front ends look for beside the compatible family.
import type { FastifyInstance } from "fastify";
import { installFamily } from "../family.ts";
import type { CompatRoutesDeps } from "./routes.ts";

export function llamaRoutes(app: FastifyInstance, _deps: CompatRoutesDeps): void {
  installFamily(app, "compat");
}
