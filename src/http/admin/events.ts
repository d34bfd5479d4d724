// The journal as server-sent events, for a bounded number of readers.
import type { FastifyReply, FastifyRequest } from "fastify";
import { GatewayError } from "../../core/errors.ts";
import type { Journal, JournalEvent } from "../../status/journal.ts";

/** Proxies and browsers drop a connection that is silent for a minute. */
const keepAliveMs = 15_000;
/** ms between two checks of the readers' license keys, beside the one before each event. */
const keyCheckMs = 500;
/** Bytes. A reader this far behind gets no more events; it may reconnect with Last-Event-ID. */
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
 * `Last-Event-ID` (or `?since=`) replays what is still kept; without it only new events are sent. A stream ends with a
 * comment that states why: its license key was revoked or has expired, the gateway stops, or the reader is too far behind.
 */
export function createEventStreams({
  journal,
  most,
  cutOff,
  everyMs = keepAliveMs,
}: EventStreamsOptions): (request: FastifyRequest, reply: FastifyReply) => void {
  const readers = new Set<Reader>();
  // Shared: a thousand readers are a thousand connections, and need not be a thousand timers.
  let timers: readonly NodeJS.Timeout[] = [];
  let unfollow: (() => void) | null = null;

  function enter(reader: Reader): void {
    readers.add(reader);
    if (unfollow) return;
    timers = [setInterval(checkKeys, keyCheckMs), setInterval(() => tellAll(": keep-alive\n\n"), everyMs)];
    unfollow = journal.follow((event) => {
      checkKeys();
      tellAll(frame(event));
    });
  }

  function leave(reader: Reader): void {
    if (!readers.delete(reader) || readers.size > 0) return;
    for (const timer of timers) clearInterval(timer);
    unfollow?.();
    unfollow = null;
  }

  function checkKeys(): void {
    for (const reader of readers) {
      if (!reader.isAllowed()) reader.end(": the license key is no longer valid\n\n");
    }
  }

  function tellAll(text: string): void {
    for (const reader of readers) reader.tell(text);
  }

  cutOff.addEventListener("abort", () => {
    for (const reader of readers) reader.end(": the gateway is stopping\n\n");
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
    response.writeHead(200, {
      "content-type": "text/event-stream; charset=utf-8",
      "cache-control": "no-cache",
      "x-accel-buffering": "no",
    });
    response.write(`: from ${journal.lastId()}\n\n`);
    if (asked !== undefined) response.write(journal.since(String(asked)).map(frame).join(""));
    // What it came back for may be more than that already.
    const allowed = mostBuffered + response.writableLength;
    const reader: Reader = {
      isAllowed: () => request.isStillAllowed(),
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
  isAllowed(): boolean;
  tell(text: string): void;
  end(text: string): void;
}

function frame({ id, at, type, data }: JournalEvent): string {
  return `id: ${id}\nevent: ${type}\ndata: ${JSON.stringify({ at, ...data })}\n\n`;
}
