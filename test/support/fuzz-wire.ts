// Sends a request as it is, well-formed or not, which fetch would not.
import { Agent, request as httpRequest } from "node:http";

export interface WireRequest {
  readonly method: string;
  /** With the query; may be no proper path. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer | null;
}

export interface WireAnswer {
  readonly status: number;
  readonly contentType: string;
  readonly text: string;
  readonly ms: number;
  /** An answer without end: it was left after its first bytes. */
  readonly left: boolean;
}

export interface Wire {
  /** Rejects where the connection breaks, and where the whole answer takes longer than `timeoutMs`. */
  send(request: WireRequest, timeoutMs: number): Promise<WireAnswer>;
  close(): void;
}

export function createWire(baseUrl: string): Wire {
  const { hostname, port } = new URL(baseUrl);
  const agent = new Agent({ keepAlive: true, maxSockets: 16 });

  function send({ method, path, headers, body }: WireRequest, timeoutMs: number): Promise<WireAnswer> {
    const started = performance.now();
    const isEndless = /^\/api\/events\b/.test(path) && method === "GET";
    return new Promise((resolve, reject) => {
      // What is no HTTP at all ends its connection, which another request may be about to use.
      const isHttp = /^[\x21-\x7e]+$/.test(path);
      const own = isHttp ? { agent } : { agent: false as const };
      const options = { hostname, port, ...own, method, path, headers: { ...headers, ...lengthOf(body) } };
      const outgoing = httpRequest(options, (response) => {
        const chunks: Buffer[] = [];
        const finish = (left: boolean): void => {
          clearTimeout(deadline);
          resolve({
            status: response.statusCode ?? 0,
            contentType: response.headers["content-type"] ?? "",
            text: Buffer.concat(chunks).toString("utf8"),
            ms: performance.now() - started,
            left,
          });
          if (left) outgoing.destroy();
        };
        response.on("data", (chunk: Buffer) => {
          chunks.push(chunk);
          if (isEndless && response.statusCode === 200) finish(true);
        });
        response.on("end", () => finish(false));
        response.on("error", reject);
      });
      const deadline = setTimeout(
        () => outgoing.destroy(new Error(`no whole answer within ${timeoutMs} ms`)),
        timeoutMs,
      );
      outgoing.on("error", (error) => {
        clearTimeout(deadline);
        reject(error);
      });
      outgoing.end(body ?? undefined);
    });
  }

  return { send, close: () => agent.destroy() };
}

function lengthOf(body: Buffer | null): Record<string, string> {
  return body ? { "content-length": String(body.length) } : {};
}
