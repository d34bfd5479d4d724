// Writes an answer straight to the socket's response, past Fastify, and keeps a record of whether the client is still there and reads.
import type { ServerResponse } from "node:http";
import type { GatewayError } from "../../core/errors.ts";
import { steadyNow } from "../../core/steady.ts";
import { type Dialect, errorHeaders, renderError } from "./errors.ts";

/**
 * Bytes up to which an answer goes out with its headers as one text, and a piece of one with its frame: several buffers cost a
 * `writev`, a tenth of a short answer and of an event.
 */
const short = 16_384;

/** Of an answer that comes in pieces: no proxy keeps or gathers it. */
export function streamHeaders(contentType: string): Record<string, string> {
  return { "content-type": contentType, "cache-control": "no-cache", "x-accel-buffering": "no" };
}

export interface ReplyListener {
  /** The client can be sent more. */
  drained(): void;
  /** The client went away before the answer was whole. */
  left(): void;
}

export class RawReply {
  readonly #response: ServerResponse;
  readonly #listener: ReplyListener | undefined;
  #blockedSince: number | null = null;
  #isBegun = false;

  constructor(response: ServerResponse, listener?: ReplyListener) {
    this.#response = response;
    this.#listener = listener;
    response.on("close", () => {
      if (!response.writableFinished) listener?.left();
    });
  }

  headersSent(): boolean {
    return this.#response.headersSent;
  }

  head(status: number, headers: Readonly<Record<string, string>>): void {
    this.#response.writeHead(status, headers);
  }

  write(chunk: Uint8Array | string): void {
    if (this.#response.destroyed || this.#put(chunk) || this.isBlocked()) return;
    this.#blockedSince = steadyNow();
    (this.#response.socket ?? this.#response).once("drain", () => {
      this.#blockedSince = null;
      this.#listener?.drained();
    });
  }

  /** False: the client reads slower than we write. */
  #put(chunk: Uint8Array | string): boolean {
    const { socket, chunkedEncoding, writableLength } = this.#response;
    const isShort = Buffer.isBuffer(chunk) && chunk.length > 0 && chunk.length <= short;
    // Not writable: its client has closed its half, and still reads what was sent. Newer Nodes hold pieces of one tick back.
    const isNext = this.#isBegun && socket?.writable && socket.writableLength === writableLength;
    if (isNext && chunkedEncoding && isShort)
      return socket.write(`${chunk.length.toString(16)}\r\n${chunk.toString("latin1")}\r\n`, "latin1");
    this.#isBegun = true;
    return this.#response.write(chunk);
  }

  /** The client reads slower than we write. */
  isBlocked(): boolean {
    return this.#blockedSince !== null;
  }

  /** The kernel has all that was written. */
  isFlushed(): boolean {
    return this.#response.writableLength === 0;
  }

  end(): void {
    if (!this.#response.destroyed) this.#response.end();
  }

  /** Headers and a body of JSON at once. */
  answer(status: number, json: Uint8Array | string, headers: Readonly<Record<string, string>>): void {
    if (this.#response.destroyed) return;
    const body = Buffer.isBuffer(json) ? json : Buffer.from(json);
    const type = "application/json; charset=utf-8";
    this.#response.writeHead(status, { "content-type": type, ...headers, "content-length": String(body.length) });
    if (body.length <= short) {
      this.#response.write(body.toString("latin1"), "latin1");
      // Else the end would add an empty buffer to it, and make it a `writev`.
      this.#response.socket?.uncork();
      this.#response.end();
    } else this.#response.end(body);
  }

  /** ms for which the client has left unread what there is to be read. */
  unreadMs(): number {
    return this.#blockedSince === null ? 0 : steadyNow() - this.#blockedSince;
  }

  /** Ends the connection: the client leaves, whatever it was sent. */
  drop(): void {
    this.#response.destroy();
  }

  hasLeft(): boolean {
    return this.#response.destroyed && !this.#response.writableFinished;
  }
}

export function refuseRaw(response: ServerResponse, dialect: Dialect, error: GatewayError): void {
  const { status, body } = renderError(dialect, error);
  new RawReply(response).answer(status, JSON.stringify(body), errorHeaders(error));
}
