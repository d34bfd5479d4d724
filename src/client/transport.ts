// One request of the client: address, license key, query and body.
import { connectionLost, errorFrom, GatewayClientError } from "./error.ts";

export interface TransportOptions {
  /** `http://127.0.0.1:8484`, with or without a path before the gateway's own. */
  readonly baseUrl: string;
  readonly licenseKey?: string;
  /** Default: the platform's. */
  readonly fetch?: typeof fetch;
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined;
}

export interface ClientRequest extends CallOptions {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH";
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Sent as JSON. */
  readonly json?: unknown;
  /** Sent as it is. */
  readonly yaml?: string | Uint8Array | undefined;
  /** Sent as multipart. */
  readonly form?: FormData;
  readonly headers?: Readonly<Record<string, string>>;
}

export type Transport = ReturnType<typeof createTransport>;

export function createTransport({ baseUrl, licenseKey, fetch: given }: TransportOptions) {
  const base = baseUrl.replace(/\/+$/, "");
  const ask = given ?? globalThis.fetch;

  /** The response, its body unread. Errors: `GatewayClientError`; an abort is thrown as `fetch` throws it. */
  async function send(path: string, request: ClientRequest = {}): Promise<Response> {
    const { method = "GET", query = {}, json, yaml, form, headers = {}, signal } = request;
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value));
    const search = parameters.size === 0 ? "" : `?${parameters.toString()}`;
    const response = await attempt(signal, () =>
      ask(`${base}${path}${search}`, {
        method,
        headers: {
          ...(licenseKey === undefined ? {} : { authorization: `Bearer ${licenseKey}` }),
          ...(json === undefined ? {} : { "content-type": "application/json" }),
          ...(yaml === undefined ? {} : { "content-type": "application/yaml" }),
          ...headers,
        },
        body:
          json === undefined
            ? ((yaml ?? form ?? null) as NonNullable<RequestInit["body"]> | null)
            : JSON.stringify(json),
        signal: signal ?? null,
      }),
    );
    if (response.ok) return response;
    throw errorFrom(response.status, await attempt(signal, () => response.text()));
  }

  return {
    send,
    /** The response's JSON, typed by the schema of its route. */
    json: async <T>(path: string, request: ClientRequest = {}): Promise<T> => {
      const response = await send(path, request);
      const text = await attempt(request.signal, () => response.text());
      try {
        return JSON.parse(text) as T;
      } catch (cause) {
        throw new GatewayClientError(response.status, `${path} did not respond with JSON`, { cause });
      }
    },
  };
}

async function attempt<T>(signal: AbortSignal | undefined, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (cause) {
    throw connectionLost(cause, signal);
  }
}
