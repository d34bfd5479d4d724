// Tells when a client goes away before it has its answer.
import type { FastifyReply } from "fastify";

/** The request's own "close" comes as soon as its body is read; the response's shows whether the client is still there. */
export function clientLeft(reply: FastifyReply): AbortSignal {
  const left = new AbortController();
  reply.raw.once("close", () => {
    if (!reply.raw.writableFinished) left.abort();
  });
  return left.signal;
}
