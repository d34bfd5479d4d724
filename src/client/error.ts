// The one error that the client throws, made from the error bodies of every route family.

/** The error of a response. `status` is 0 if the response was incomplete. */
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
  if (typeof error === "object" && error !== null) {
    const { message, code, hint } = error as {
      readonly message?: unknown;
      readonly code?: unknown;
      readonly hint?: unknown;
    };
    return new GatewayClientError(status, typeof message === "string" ? message : `the gateway responded ${status}`, {
      code: typeof code === "string" ? code : null,
      hint: typeof hint === "string" ? hint : null,
    });
  }
  return new GatewayClientError(status, text.trim().slice(0, 200) || `the gateway responded ${status}`);
}

function errorField(text: string): unknown {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === "object" && body !== null && "error" in body ? body.error : undefined;
  } catch {
    return undefined;
  }
}
