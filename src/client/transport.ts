// One request of the client: address, license key, and errors of every route family in one shape.

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

interface ClientRequest extends CallOptions {
  readonly method?: "GET" | "POST" | "PUT" | "PATCH";
  readonly query?: Readonly<Record<string, string | number | boolean | undefined>>;
  /** Sent as JSON. */
  readonly json?: unknown;
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
    const { method = "GET", query = {}, json, form, headers = {}, signal } = request;
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) if (value !== undefined) parameters.set(name, String(value));
    const search = parameters.size === 0 ? "" : `?${parameters.toString()}`;
    const response = await attempt(signal, () =>
      ask(`${base}${path}${search}`, {
        method,
        headers: {
          ...(licenseKey === undefined ? {} : { authorization: `Bearer ${licenseKey}` }),
          ...(json === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        body: json === undefined ? (form ?? null) : JSON.stringify(json),
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

/** The one error that the client throws. */
export class GatewayClientError extends Error {
  override readonly name = "GatewayClientError";
  /** HTTP status; 0: nothing, or only a part, arrived. */
  readonly status: number;
  /** A documented code; null where the route's family has none. `unreachable` and `cut` are the client's own. */
  readonly code: string | null;
  /** The remedy, if the gateway has one. */
  readonly hint: string | null;

  constructor(
    status: number,
    message: string,
    { code = null, hint = null, cause }: { code?: string | null; hint?: string | null; cause?: unknown } = {},
  ) {
    super(message, cause === undefined ? undefined : { cause });
    this.status = status;
    this.code = code;
    this.hint = hint;
  }
}

/** From a body of any family: `{error: {code, message, hint}}` or `{error: "text"}`; other text is quoted in part. */
function errorFrom(status: number, text: string): GatewayClientError {
  const error = errorField(text);
  if (typeof error === "string") return new GatewayClientError(status, error);
  const { message, code, hint } = (error ?? {}) as Readonly<Record<string, unknown>>;
  const told = typeof message === "string" ? message : text.trim().slice(0, 200);
  return new GatewayClientError(status, told || `the gateway responded ${status}`, {
    code: typeof code === "string" ? code : null,
    hint: typeof hint === "string" ? hint : null,
  });
}

function errorField(text: string): unknown {
  try {
    return (JSON.parse(text) as { readonly error?: unknown } | null)?.error;
  } catch {
    return undefined;
  }
}

async function attempt<T>(signal: AbortSignal | undefined, run: () => Promise<T>): Promise<T> {
  try {
    return await run();
  } catch (cause) {
    throw connectionLost(cause, signal);
  }
}

/** A failure below HTTP as our own; an abort, and what is our own already, as it is. */
export function connectionLost(cause: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted || cause instanceof GatewayClientError) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new GatewayClientError(0, `incomplete response from the gateway: ${reason}`, { code: "unreachable", cause });
}
