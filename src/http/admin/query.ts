// Query parameters of calls that change something: a mistyped `dryRun`, or one on a route that has none, must not become
// the real thing.
import type { FastifyInstance } from "fastify";
import { GatewayError } from "../../core/errors.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** The query parameters that a route takes; absent: none. Not looked at where nothing is changed. */
    readonly query?: readonly string[];
  }
}

export function refuseUnknownQueries(app: FastifyInstance): void {
  app.addHook("preValidation", (request, _reply, done) => {
    if (request.method === "GET" || request.method === "HEAD") return done();
    const known = request.routeOptions.config.query ?? [];
    const unknown = Object.keys(request.query as object).filter((key) => !known.includes(key));
    if (unknown.length === 0) return done();
    const hint = known.length === 0 ? "none is known here" : `${known.join(", ")} are known here`;
    done(new GatewayError("invalid_request", `unknown query parameter ${unknown.join(", ")}: ${hint}`));
  });
}
