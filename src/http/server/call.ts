// Who asks for an edit: what the edits need to know of a request.
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Call } from "../../commands/in-force.ts";
import { clientLeft } from "./client-left.ts";

export function callOf(request: FastifyRequest, reply: FastifyReply): Call {
  // The route and not the address: that may carry a license key.
  return { by: `http:${request.method} ${request.routeOptions.url ?? ""}`, signal: clientLeft(reply) };
}
