// What a command needs to know of a request: its author, and whether its client is still there.
import type { FastifyReply, FastifyRequest } from "fastify";
import type { Call } from "../../commands/in-force.ts";

export function callOf(request: FastifyRequest, reply: FastifyReply): Call {
  // The route and not the address: that may carry a license key.
  return {
    by: `http:${request.method} ${request.routeOptions.url ?? ""}`,
    key: request.keyName(),
    peer: request.socket.remoteAddress ?? null,
    client: request.headers["user-agent"] ?? null,
    signal: clientLeft(reply),
  };
}

/**
 * Aborted when the client goes away before it has its answer. The request's own "close" comes as soon as its body is read; the
 * response's shows whether the client is still there.
 */
export function clientLeft(reply: FastifyReply): AbortSignal {
  const left = new AbortController();
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) left.abort();
  });
  return left.signal;
}
