// Serves the description of everything that is served.
import type { FastifyInstance } from "fastify";
import { operations } from "../../../schemas/operations.ts";
import { openApiDocument, type Prefixes } from "./openapi.ts";

export interface OpenApiRouteDeps {
  readonly prefixes: Prefixes;
  readonly version: () => string;
}

/** Built when it is first asked for, and kept. */
export function openApiRoute(app: FastifyInstance, { prefixes, version }: OpenApiRouteDeps): void {
  let bytes: Buffer | undefined;
  app.get("/openapi.json", (_request, reply) => {
    bytes ??= Buffer.from(JSON.stringify(openApiDocument({ operations, prefixes, version: version() })));
    return reply.type("application/json; charset=utf-8").send(bytes);
  });
}
