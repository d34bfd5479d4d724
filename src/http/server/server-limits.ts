// What one client may hold of the server: the time to send a request, the time to read an answer, and its place among the
// connections. Knows no route.
import type { Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { FastifyInstance, FastifyServerOptions } from "fastify";
import { GatewayError } from "../../core/errors.ts";
import { steadyNow } from "../../core/steady.ts";
import { renderError } from "./errors.ts";

declare module "fastify" {
  interface FastifyContextConfig {
    /** Answered also where every connection is taken: supervisors must not take a full gateway for a dead one. */
    readonly probe?: boolean;
  }
}

export interface ServerLimits {
  /** Bytes of a request's line and headers. */
  readonly headerLimit: number;
  /** ms in which they, and the whole request, must have come. */
  readonly headerTimeoutMs: number;
  readonly requestTimeoutMs: number;
  /** ms that a connection stays open between two requests. */
  readonly idleTimeoutMs: number;
  /** ms that a client may leave unread what it is sent. */
  readonly writeStallMs: number;
  /** Open at once. */
  readonly maxConnections: number;
}

/** ms between Node's checks of incoming requests; a limit is exceeded by as much. */
const mostLookedAfterMs = 15_000;
/** A suspended laptop closes nothing: after so many ms without a byte its connection is probed. */
const probedAfterMs = 60_000;

export type ServerOptions = Pick<
  FastifyServerOptions,
  "requestTimeout" | "keepAliveTimeout" | "forceCloseConnections" | "clientErrorHandler"
> & { readonly http: object };

const patient = new WeakSet<Duplex>();

/** The request on this connection may come as slowly as its route allows, until the result is called. */
export function grantTime(socket: Socket): () => void {
  patient.add(socket);
  return () => void patient.delete(socket);
}

export function serverOptions({
  headerLimit,
  headerTimeoutMs,
  requestTimeoutMs,
  idleTimeoutMs,
}: ServerLimits): ServerOptions {
  return {
    // Of receiving a request: an answer may take as long as the model does.
    requestTimeout: requestTimeoutMs,
    keepAliveTimeout: idleTimeoutMs,
    forceCloseConnections: true,
    clientErrorHandler: (error: NodeJS.ErrnoException, socket) => {
      // Node reports a request that takes too long once, and leaves it to this listener to end it.
      if (error.code !== "ERR_HTTP_REQUEST_TIMEOUT" || !patient.has(socket)) refuseUnread(error, socket);
    },
    http: {
      maxHeaderSize: headerLimit,
      // Node refuses a header timeout that is longer than the whole request's.
      headersTimeout: Math.min(headerTimeoutMs, requestTimeoutMs),
      connectionsCheckingInterval: Math.min(mostLookedAfterMs, headerTimeoutMs / 4, requestTimeoutMs / 4),
      keepAlive: true,
      keepAliveInitialDelay: probedAfterMs,
    },
  };
}

/** A client that sends `Expect: 100-continue` gets 100, unless its body is larger than any limit. */
export function refuseUnsent(server: Server, mostBytes: number): void {
  server.on("checkContinue", (request, response) => {
    if (!(Number(request.headers["content-length"]) > mostBytes)) response.writeContinue();
    server.emit("request", request, response);
  });
}

/** What the HTTP parser would not take: an answer in the gateway's own shape, then the end of the connection. */
function refuseUnread({ code }: NodeJS.ErrnoException, socket: Socket): void {
  // A client that went away is no error; and in the middle of an answer there is no place for another.
  if (code === "ECONNRESET" || !socket.writable || socket.bytesWritten > 0) return void socket.destroy();
  const [status, message] = refusals.get(code) ?? ["400 Bad Request", "this is no HTTP request"];
  const text = JSON.stringify(renderError("gateway", new GatewayError("invalid_request", message)).body);
  const length = Buffer.byteLength(text);
  const head = `content-type: application/json; charset=utf-8\r\ncontent-length: ${length}\r\nconnection: close`;
  socket.end(`HTTP/1.1 ${status}\r\n${head}\r\n\r\n${text}`, () => socket.destroy());
}

const refusals: ReadonlyMap<string | undefined, readonly [status: string, message: string]> = new Map([
  [
    "HPE_HEADER_OVERFLOW",
    ["431 Request Header Fields Too Large", "the address and headers are larger than --header-limit allows"],
  ],
  [
    "ERR_HTTP_REQUEST_TIMEOUT",
    ["408 Request Timeout", "the request did not come within --header-timeout and --request-timeout"],
  ],
]);

const awaited = Symbol("responses that are not over");
const idleSince = Symbol("idle since");

type Connection = Socket & {
  /** In their order; several where a client pipelines requests. */
  [awaited]?: ServerResponse[];
  /** In the order of all connections. */
  [idleSince]?: number;
};

function isAwaited(socket: Connection): boolean {
  return socket[awaited] !== undefined && socket[awaited].length > 0;
}

function followResponses(server: Server): void {
  let turn = 0;
  server.on("connection", (socket: Connection) => {
    const responses: ServerResponse[] = [];
    socket[awaited] = responses;
    socket[idleSince] = ++turn;
    // Node before 26 closes only the response that it is writing. One behind it kept its model busy after its client had left.
    socket.once("close", () => {
      for (const response of responses.slice())
        if (!response.socket && !response.destroyed) response.destroy().emit("close");
    });
  });
  server.prependListener("request", ({ socket }: { readonly socket: Connection }, response: ServerResponse) => {
    const responses = socket[awaited] ?? [];
    responses.push(response);
    response.on("close", () => {
      const at = responses.indexOf(response);
      if (at >= 0) responses.splice(at, 1);
      socket[idleSince] = ++turn;
    });
  });
}

function longestIdle(sockets: Iterable<Connection>): Connection | undefined {
  let found: Connection | undefined;
  for (const socket of sockets)
    if (!isAwaited(socket) && (!found || (socket[idleSince] ?? 0) < (found[idleSince] ?? 0))) found = socket;
  return found;
}

/** Ends connections on which nothing is asked, and those whose client does not read. */
export function limitSilence(server: Server, writeStallMs: number): void {
  followResponses(server);
  server.setTimeout(writeStallMs);
  // No byte went either way for so long. That is a model that computes, unless there is something to be read.
  server.on("timeout", (socket: Socket) => {
    if (isAwaited(socket) && socket.writableLength === 0) socket.setTimeout(writeStallMs);
    else socket.destroy();
  });
}

const surplusSockets = new WeakSet<Socket>();

/** Whether the connection is beyond the limit, and open for one request to be refused. */
export function isSurplus(socket: Socket): boolean {
  return surplusSockets.has(socket);
}

/** ms between two lines about connections that were refused. */
const toldEveryMs = 60_000;
/** Connections beyond the limit, each for one request. */
const mostSurplus = 64;
/** ms that such a connection may stay open. */
const surplusMs = 5_000;

/**
 * File descriptors are needed for the engines and the models, too. Beyond the limit the longest idle connection is closed for a
 * new one: 3,000 silent connections kept /livez out. Where all of them are busy, a new one gets an error. Call it after
 * {@link limitSilence} and before the routes are registered.
 */
export function limitConnections(
  app: FastifyInstance,
  most: number,
  warn: (fields: object, message: string) => void,
): void {
  const open = new Set<Socket>();
  /** Beyond the limit. */
  const surplus = new Set<Socket>();
  let tellAt = 0;

  function forget(socket: Socket): void {
    open.delete(socket);
    surplus.delete(socket);
  }

  function end(socket: Socket | undefined): void {
    if (!socket) return;
    // Its close event comes later, and the next connection may come before it.
    forget(socket);
    socket.destroy();
  }

  app.server.on("connection", (socket: Socket) => {
    socket.once("close", () => forget(socket));
    if (open.size >= most) end(longestIdle(open));
    if (open.size < most) return void open.add(socket);
    if (steadyNow() >= tellAt) {
      tellAt = steadyNow() + toldEveryMs;
      warn({ most }, "connections refused: --max-connections are in use");
    }
    if (surplus.size >= mostSurplus) end([...surplus][0]);
    surplus.add(socket);
    surplusSockets.add(socket);
    setTimeout(() => socket.destroy(), surplusMs).unref();
  });
  app.addHook("onRequest", (request, reply, done) => {
    if (!isSurplus(request.raw.socket)) return done();
    void reply.header("connection", "close");
    if (request.routeOptions.config.probe === true) return done();
    const message = `all ${most} connections are in use (--max-connections)`;
    done(new GatewayError("busy", message, { retryAfterMs: 5_000 }));
  });
}
