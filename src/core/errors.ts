// Coded errors. Each HTTP family renders a GatewayError in its own shape. Pure.
import { type ErrorCode, errorCatalog, type Reaction } from "./error-catalog.ts";

/** An error with a documented code. `cause` keeps the original; `message` may be shown to a client, so it holds no secret. */
export class GatewayError extends Error {
  override readonly name = "GatewayError";
  readonly code: ErrorCode;
  /** Extra milliseconds to wait before a retry, where the other side named them. */
  readonly retryAfterMs: number | undefined;
  /** The member of the request's body that is at fault, where it is one. */
  readonly param: string | undefined;
  /** Of `disk_full`: bytes that the whole of it would still take, where that is known. */
  readonly neededBytes: number | undefined;

  constructor(
    code: ErrorCode,
    message: string,
    options: { cause?: unknown; retryAfterMs?: number; param?: string; neededBytes?: number } = {},
  ) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause });
    this.code = code;
    this.retryAfterMs = options.retryAfterMs;
    this.param = options.param;
    this.neededBytes = options.neededBytes;
  }

  get status(): number {
    return errorCatalog[this.code].status;
  }

  get reaction(): Reaction {
    return errorCatalog[this.code].reaction;
  }

  get reason(): string {
    return errorCatalog[this.code].reason;
  }

  get hint(): string {
    return errorCatalog[this.code].hint;
  }
}

/** A wait or work that ended because its client did. */
export function clientLeftError(options: { cause?: unknown } = {}): GatewayError {
  return new GatewayError("cancelled", "the client left", options);
}

/** For what comes, or still waits, after the stop has begun. */
export function stoppingError(): GatewayError {
  return new GatewayError("shutting_down", "the gateway is stopping");
}

/** For what would change a model cache that another gateway writes. */
export function cacheReadOnly(): GatewayError {
  return new GatewayError(
    "cache_read_only",
    "another gateway writes the model cache: nothing is stored or deleted here",
  );
}

/** Any thrown value as a GatewayError; what has no code of its own becomes `internal`. */
export function toGatewayError(error: unknown): GatewayError {
  if (error instanceof GatewayError) return error;
  const message = error instanceof Error ? error.message : String(error);
  return new GatewayError("internal", message, { cause: error });
}

/** Two sentences, whatever the first one ends in: an error's message has no full stop, a question keeps its mark. */
export function followedBy(first: string, next: string): string {
  return /[.?!]$/.test(first) ? `${first} ${next}` : `${first}. ${next}`;
}

/** The `code` of a Node system error (`ENOENT`, `ENOSPC`, …), if it is one. */
export function systemCode(error: unknown): string | undefined {
  if (error instanceof Error && "code" in error && typeof error.code === "string") return error.code;
  return undefined;
}

/** Of any thrown value, in a word where the system has one. */
export function reasonOf(error: unknown): string {
  return systemCode(error) ?? (error instanceof Error ? error.message : String(error));
}

/** Nothing lies at the path, or a file where a folder should be: other programs tidy up meanwhile. */
export function isAbsent(error: unknown): boolean {
  return ["ENOENT", "ENOTDIR"].includes(systemCode(error) ?? "");
}

/** For `catch`: null for what is absent. */
export function ignoreAbsent(error: unknown): null {
  if (isAbsent(error)) return null;
  throw error;
}

/** For `catch`: null also for a link that leads to itself. */
export function ignoreDangling(error: unknown): null {
  if (systemCode(error) === "ELOOP") return null;
  return ignoreAbsent(error);
}
