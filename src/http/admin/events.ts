// The journal as server-sent events, for a bounded number of readers.
import type { ServerResponse } from "node:http";
import type { FastifyReply, FastifyRequest } from "fastify";
import { eventDataSchema, eventsQuerySchema } from "../../../schemas/desired.ts";
import { events, ok } from "../../../schemas/route.ts";
import { GatewayError } from "../../core/errors.ts";
import type { Journal, JournalEvent } from "../../status/journal.ts";
import { streamHeaders } from "../server/raw-reply.ts";
import { routesOf } from "../server/route.ts";

/** Proxies and browsers drop a connection that is silent for a minute. */
const keepAliveMs = 15_000;
/** ms between two checks of the readers' license keys, beside the one before each event. */
const keyCheckMs = 500;
/** Bytes. A reader this far behind gets no more events; it may reconnect with Last-Event-ID. */
const mostBuffered = 1 << 18;

export interface EventRouteDeps {
  readonly streamEvents: (request: FastifyRequest, reply: FastifyReply) => void;
}

export const eventsRoute = routesOf<EventRouteDeps>().get("/api/events", {
  operationId: "events",
  summary: "Stream events",
  description:
    "With `Last-Event-ID` the events after it come first, as far as they are kept: of the progress of an action only the latest, of all others the last 1000. An event of type `reset` comes before them where some are missing, or the id is of another run of the gateway: read the status again then.",
  querystring: eventsQuerySchema,
  headers: { "Last-Event-ID": "The id of the last event that was seen, `EPOCH-N`." },
  response: ok("One event after the other, until the client leaves.", events(eventDataSchema)),
  exposeHeadRoute: false,
  config: { endless: true },
  handler: ({ streamEvents }, request, reply) => streamEvents(request, reply),
});

export interface EventStreamsOptions {
  readonly journal: Journal;
  /** Readers at once. */
  readonly most: number;
  /** All end. */
  readonly cutOff: AbortSignal;
  /** ms between two signs of life. */
  readonly everyMs?: number;
}

interface Reader {
  readonly request: FastifyRequest;
  readonly response: ServerResponse;
  /** Bytes. */
  readonly mostBuffered: number;
}

/**
 * `Last-Event-ID` (or `?since=`) replays what is still kept; without it only new events are sent. A stream ends with a
 * comment that states why: its license key was revoked or has expired, the gateway stops, or the reader is too far behind.
 */
export function createEventStreams({
  journal,
  most,
  cutOff,
  everyMs = keepAliveMs,
}: EventStreamsOptions): EventRouteDeps["streamEvents"] {
  const readers = new Set<Reader>();
  /** One of each for all, while there are any: a thousand readers need not be a thousand timers. */
  let timers: readonly NodeJS.Timeout[] = [];

  function join(reader: Reader): void {
    readers.add(reader);
    if (readers.size > 1) return;
    timers = [setInterval(checkKeys, keyCheckMs), setInterval(() => tellAll(": keep-alive\n\n"), everyMs)];
    for (const timer of timers) timer.unref();
  }

  function leave(reader: Reader): void {
    if (readers.delete(reader) && readers.size === 0) for (const timer of timers) clearInterval(timer);
  }

  /** It leaves first: until the connection closes, events would be written after the end. */
  function end(reader: Reader, why: string): void {
    leave(reader);
    reader.response.end(`: ${why}\n\n`);
  }

  function checkKeys(): void {
    for (const reader of readers)
      if (!reader.request.isStillAllowed()) end(reader, "the license key is no longer valid");
  }

  function tellAll(text: string): void {
    for (const reader of readers) {
      if (reader.response.writableLength <= reader.mostBuffered) reader.response.write(text);
      else end(reader, "you are too far behind; come back with Last-Event-ID");
    }
  }

  const unfollow = journal.follow((event) => {
    if (readers.size === 0) return;
    checkKeys();
    tellAll(frame(event));
  });
  cutOff.addEventListener("abort", () => {
    unfollow();
    for (const reader of readers) end(reader, "the gateway is stopping");
  });

  return (request, reply) => {
    const { since } = request.query as { since?: string };
    const asked = request.headers["last-event-id"] ?? since;
    if (readers.size >= most)
      throw new GatewayError("busy", `${readers.size} event streams are open, and --event-listeners allows no more`, {
        retryAfterMs: 10_000,
      });
    reply.hijack();
    const response = reply.raw;
    response.writeHead(200, streamHeaders("text/event-stream; charset=utf-8"));
    response.write(`: from ${journal.lastId()}\n\n`);
    if (asked !== undefined) response.write(journal.since(String(asked)).map(frame).join(""));
    // What it came back for may be more than that already.
    const reader = { request, response, mostBuffered: mostBuffered + response.writableLength };
    join(reader);
    response.on("close", () => leave(reader));
  };
}

function frame({ id, at, type, data }: JournalEvent): string {
  return `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify({ at, ...data })}\n\n`;
}
