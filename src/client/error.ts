// The one error that the client throws: from an error response of any route family, or from a lost connection.

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
export function errorFrom(status: number, text: string): GatewayClientError {
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

/** A failure below HTTP as our own; an abort, and what is our own already, as it is. */
export function connectionLost(cause: unknown, signal: AbortSignal | undefined): unknown {
  if (signal?.aborted || cause instanceof GatewayClientError) return cause;
  const reason = cause instanceof Error ? cause.message : String(cause);
  return new GatewayClientError(0, `incomplete response from the gateway: ${reason}`, { code: "unreachable", cause });
}
