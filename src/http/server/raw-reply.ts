// Writes an answer straight to the socket's response, past Fastify: one write per turn of the event loop, as a token each
// would cost a system call, and a record of whether the client is still there.
import type { ServerResponse } from "node:http";
import { steadyNow } from "../../core/steady.ts";

export interface RawReply {
  readonly headersSent: () => boolean;
  head(status: number, headers: Readonly<Record<string, string>>): void;
  /** False: the client reads slower than we write; `onDrain` follows. */
  write(chunk: Uint8Array | string): boolean;
  end(): void;
  /** ms for which the client has left unread what there is to be read. */
  unreadMs(): number;
  /** Ends the connection: the client leaves, whatever it was sent. */
  drop(): void;
  onDrain(listener: () => void): void;
  /** The client went away before the answer was whole. */
  onLeave(listener: () => void): void;
}

export function createRawReply(response: ServerResponse): RawReply {
  let pending: Uint8Array[] = [];
  let scheduled = false;
  let blockedSince: number | null = null;
  const drainListeners: (() => void)[] = [];
  const leaveListeners: (() => void)[] = [];

  function flush(): void {
    scheduled = false;
    if (pending.length === 0 || response.destroyed) return;
    const [first] = pending;
    const chunk = pending.length === 1 && first ? first : Buffer.concat(pending);
    pending = [];
    if (!response.write(chunk)) blockedSince ??= steadyNow();
  }

  response.on("drain", () => {
    blockedSince = null;
    for (const listener of drainListeners) listener();
  });
  response.on("close", () => {
    if (!response.writableFinished) for (const listener of leaveListeners) listener();
  });

  return {
    headersSent: () => response.headersSent,
    head: (status, headers) => void response.writeHead(status, headers),
    write: (chunk) => {
      if (response.destroyed) return true;
      pending.push(typeof chunk === "string" ? Buffer.from(chunk) : chunk);
      if (!scheduled) {
        scheduled = true;
        process.nextTick(flush);
      }
      return blockedSince === null;
    },
    end: () => {
      flush();
      if (!response.destroyed) response.end();
    },
    unreadMs: () => (blockedSince === null ? 0 : steadyNow() - blockedSince),
    drop: () => void response.destroy(),
    onDrain: (listener) => void drainListeners.push(listener),
    onLeave: (listener) => {
      // It may have left while the request waited.
      if (response.destroyed && !response.writableFinished) listener();
      else leaveListeners.push(listener);
    },
  };
}
