// The journal as server-sent events, for so many readers at once as are allowed.
import type { FastifyReply, FastifyRequest } from "fastify";
import { GatewayError } from "../../core/errors.ts";
import type { Journal, JournalEvent } from "../../status/journal.ts";

/** Proxies and browsers drop a connection that is silent for a minute. */
const keepAliveMs = 15_000;
/** Bytes. A reader this far behind is told no more; it may come back with Last-Event-ID. */
const mostBuffered = 1 << 18;

export interface EventStreamsOptions {
  readonly journal: Journal;
  /** Readers at once. */
  readonly most: number;
  /** All end. */
  readonly cutOff: AbortSignal;
  /** ms between two signs of life. */
  readonly everyMs?: number;
}

/**
 * `Last-Event-ID` (or `?since=`) replays what is still kept; without it only what happens from now on is sent. Ends with a
 * word why: at the first sign of life after the request's license key has been revoked or has expired, when the gateway
 * stops, and when the reader is too far behind.
 */
export function createEventStreams({
  journal,
  most,
  cutOff,
  everyMs = keepAliveMs,
}: EventStreamsOptions): (request: FastifyRequest, reply: FastifyReply) => void {
  const readers = new Set<Reader>();
  // One for all: a thousand readers are a thousand connections, and need not be a thousand timers.
  let timer: NodeJS.Timeout | null = null;
  let unfollow: (() => void) | null = null;

  function enter(reader: Reader): void {
    readers.add(reader);
    timer ??= setInterval(signOfLife, everyMs);
    unfollow ??= journal.follow((event) => {
      const text = frame(event);
      for (const each of readers) each.tell(text);
    });
  }

  function leave(reader: Reader): void {
    if (!readers.delete(reader) || readers.size > 0) return;
    if (timer) clearInterval(timer);
    timer = null;
    unfollow?.();
    unfollow = null;
  }

  function signOfLife(): void {
    for (const reader of readers) {
      if (reader.isLicensed()) reader.tell(": keep-alive\n\n");
      else reader.end(": the license key is not valid any more\n\n");
    }
  }

  cutOff.addEventListener("abort", () => {
    for (const reader of readers) reader.end(": the gateway is stopping\n\n");
  });

  return (request, reply) => {
    const { since } = request.query as { since?: string };
    const asked = request.headers["last-event-id"] ?? since;
    if (asked !== undefined && !/^\d+$/.test(String(asked)))
      throw new GatewayError("invalid_request", "since (or Last-Event-ID) must be the number of an event");
    if (readers.size >= most)
      throw new GatewayError("busy", `${readers.size} event streams are open, and --event-listeners allows no more`, {
        retryAfterMs: 10_000,
      });
    reply.hijack();
    const response = reply.raw;
    response.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    });
    response.write(`: from ${journal.lastId()}\n\n`);
    if (asked !== undefined) response.write(journal.since(Number(asked)).map(frame).join(""));
    // What it came back for may be more than that already.
    const allowed = mostBuffered + response.writableLength;
    const reader: Reader = {
      isLicensed: () => request.stillLicensed(),
      tell: (text) => {
        if (response.writableLength <= allowed) response.write(text);
        else reader.end(": you are too far behind; come back with Last-Event-ID\n\n");
      },
      // It leaves first: until the connection closes, events would be written after the end.
      end: (text) => {
        leave(reader);
        response.end(text);
      },
    };
    enter(reader);
    response.on("close", () => leave(reader));
  };
}

interface Reader {
  isLicensed(): boolean;
  tell(text: string): void;
  end(text: string): void;
}

function frame({ id, at, type, data }: JournalEvent): string {
  return `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify({ at, ...data })}\n\n`;
}
