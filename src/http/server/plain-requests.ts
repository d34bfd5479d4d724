// The way of a plain chat past the framework: a short JSON body for a known path, from a client that may ask, while nothing is in the
// way. All others, and each that is refused before its body is read, go through Fastify and its hooks: they decide, this only admits.
import { createServer, type IncomingMessage, type RequestListener, type Server, type ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { KeyScope } from "../../keys/key-list.ts";
import type { Access } from "../auth/access.ts";
import type { ServerOptions } from "./server-limits.ts";

/** Answers a body that has been read. Every license key may ask for it. */
export type PlainRoute = (body: Buffer, scope: KeyScope, response: ServerResponse) => void;

export interface PlainRequests {
  /** By path. */
  readonly routes: ReadonlyMap<string, PlainRoute>;
  readonly access: Access;
  /** Bytes of a body. */
  readonly mostBytes: number;
  /** Nothing but its license key decides over a request on this connection. */
  readonly isOpen: (socket: Socket) => boolean;
  readonly onBegin: (response: ServerResponse) => void;
}

/** Bytes up to which a body is parsed: faster than our scan, and within 0.1 ms whatever is in it. */
export const shortBody = 16 * 1024;

export function createPlainServer(
  { http, keepAliveTimeout, requestTimeout }: ServerOptions,
  plain: PlainRequests,
  others: RequestListener,
): Server {
  const server = createServer(http, (request, response) => {
    if (!isTaken(plain, request, response)) others(request, response);
  });
  return Object.assign(server, { keepAliveTimeout, requestTimeout });
}

function isTaken(plain: PlainRequests, request: IncomingMessage, response: ServerResponse): boolean {
  const route = request.method === "POST" ? plain.routes.get(request.url ?? "") : undefined;
  if (!route || !isShortJson(request, Math.min(shortBody, plain.mostBytes)) || !plain.isOpen(request.socket))
    return false;
  const { refusalOf, scopeNow } = plain.access;
  const scope = refusalOf(request, request.url) ? null : scopeNow(request);
  if (scope === null) return false;
  plain.onBegin(response);
  let body: Buffer | null = null;
  request.on("data", (chunk: Buffer) => {
    body = body ? Buffer.concat([body, chunk]) : chunk;
  });
  request.on("end", () => route(body ?? Buffer.alloc(0), scope, response));
  return true;
}

function isShortJson({ headers }: IncomingMessage, mostBytes: number): boolean {
  const { "content-type": type, "content-length": length, origin, expect } = headers;
  return (
    type?.startsWith("application/json") === true &&
    Number(length) <= mostBytes &&
    origin === undefined &&
    expect === undefined
  );
}
