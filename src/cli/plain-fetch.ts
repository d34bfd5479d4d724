// What the client needs of `fetch`, over node:http: undici and the platform's own fetch took half of a command's processor time
// to load. Without time limits: a queued pull sends nothing until its turn.
import { type Agent, type IncomingMessage, request } from "node:http";
import { Readable } from "node:stream";
import { buffer } from "node:stream/consumers";

export function askWith(agent: Agent, userAgent: string): typeof fetch {
  return async (input, init = {}) => {
    const { method = "GET", headers = {}, body, signal } = init;
    // A sound file, as multipart.
    const form = body instanceof Object && body.constructor.name === "FormData" ? new Response(body) : null;
    const bytes = form ? Buffer.from(await form.arrayBuffer()) : (body as string | Uint8Array | null);
    const message = await new Promise<IncomingMessage>((resolve, reject) => {
      const asked = request(
        input as string,
        {
          agent,
          method,
          headers: {
            ...(headers as Record<string, string>),
            "user-agent": userAgent,
            ...(form && { "content-type": form.headers.get("content-type") ?? "" }),
            ...(bytes && { "content-length": Buffer.byteLength(bytes) }),
          },
          ...(signal ? { signal } : {}),
        },
        resolve,
      );
      asked.once("error", reject);
      asked.end(bytes ?? undefined);
    });
    return responseOf(message) as Response;
  };
}

/** The members that the client reads. */
function responseOf(message: IncomingMessage): Partial<Response> {
  const { statusCode: status = 0, headers } = message;
  const text = async (): Promise<string> => (await buffer(message)).toString();
  return {
    status,
    ok: status >= 200 && status < 300,
    headers: { get: (name: string) => String(headers[name] ?? "") || null } as Headers,
    text,
    json: async () => JSON.parse(await text()) as unknown,
    blob: async () => new Blob([await buffer(message)]),
    get body() {
      return Readable.toWeb(message);
    },
  };
}
