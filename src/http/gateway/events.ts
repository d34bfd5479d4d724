// The journal as server-sent events.
import type { FastifyReply, FastifyRequest } from "fastify";
import { GatewayError } from "../../core/errors.ts";
import type { Journal, JournalEvent } from "../../status/journal.ts";

/** Proxies and browsers drop a connection that is silent for a minute. */
const keepAliveMs = 15_000;
/** A reader this far behind is cut off; it may come back with Last-Event-ID. */
const mostBuffered = 1 << 20;

/**
 * `Last-Event-ID` (or `?since=`) replays what is still kept; without it only what happens from now on is sent. Ends at the
 * first sign of life (`everyMs`) after the request's license key has been revoked or has expired.
 */
export function streamEvents(
  journal: Journal,
  request: FastifyRequest,
  reply: FastifyReply,
  everyMs = keepAliveMs,
): void {
  const { since } = request.query as { since?: string };
  const asked = request.headers["last-event-id"] ?? since;
  if (asked !== undefined && !/^\d+$/.test(String(asked)))
    throw new GatewayError("invalid_request", "since (or Last-Event-ID) must be the number of an event");
  reply.hijack();
  const response = reply.raw;
  response.writeHead(200, {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
  });
  const from = Number(asked ?? Number.NaN);
  response.write(`: from ${journal.lastId()}\n\n`);
  if (Number.isFinite(from)) for (const event of journal.since(from)) response.write(frame(event));
  const unfollow = journal.follow((event) => {
    if (response.writableLength > mostBuffered) response.destroy();
    else response.write(frame(event));
  });
  const timer = setInterval(() => {
    if (request.stillLicensed()) return void response.write(": keep-alive\n\n");
    // Before the end: until the connection closes, events would be written after it.
    leave();
    response.end(": the license key is not valid any more\n\n");
  }, everyMs);
  const leave = (): void => {
    unfollow();
    clearInterval(timer);
  };
  response.on("close", leave);
}

function frame({ id, at, type, data }: JournalEvent): string {
  return `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify({ at, ...data })}\n\n`;
}
