// The loopback hub's JSON: answers, pages of a listing, refusals with the hub's error headers.
import type { IncomingMessage, ServerResponse } from "node:http";

export interface Reply {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly url: URL;
}

export function refuse(response: ServerResponse, status: number, code: string | undefined, message: string): void {
  response.setHeader("X-Error-Message", message);
  if (code) response.setHeader("X-Error-Code", code);
  response.writeHead(status, { "Content-Type": "application/json" }).end(JSON.stringify({ error: message }));
}

export function sendJson(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(value));
}

/** A page of a listing, with the address of the next one in Link. */
export function sendPage({ response, url }: Reply, entries: readonly unknown[], size: number): void {
  const start = Number(Buffer.from(url.searchParams.get("cursor") ?? "", "base64url").toString() || "0");
  if (start + size < entries.length) {
    const next = new URL(url);
    next.searchParams.set("cursor", Buffer.from(String(start + size)).toString("base64url"));
    response.setHeader("Link", `<${next.href}>; rel="next"`);
  }
  sendJson(response, entries.slice(start, start + size));
}
