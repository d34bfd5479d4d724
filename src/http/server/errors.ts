// One mapper per family: the same error in the shape that the family's clients read. Pure.
import { followedBy, type GatewayError, toGatewayError } from "../../core/errors.ts";
import { parseJson } from "../../core/json.ts";

export type Family = "gateway" | "compat" | "native";

/** Error shapes of an answer in flight; the compatible family has three: OpenAI's two and Anthropic's. */
export type Dialect = "compat" | "responses" | "messages" | "native";

export interface RenderedError {
  readonly status: number;
  readonly body: object;
}

interface CompatError {
  readonly message: string;
  readonly type: string;
  readonly param: string | null;
  readonly code: string;
}

export function renderError(family: Family | Dialect, thrown: unknown): RenderedError {
  const error = toGatewayError(thrown);
  // The message of a defect may hold anything: it goes into the log, not to a client.
  const message = error.code === "internal" ? "internal error" : error.message;
  if (family === "gateway")
    return { status: error.status, body: { error: { code: error.code, message, hint: error.hint } } };
  const told = hinted.has(error.code) ? followedBy(message, error.hint) : message;
  const type = error.status < 500 ? "invalid_request_error" : "server_error";
  return {
    status: error.status,
    body: shapes[family]({ message: told, type, param: paramOf(error), code: error.code }, error.status),
  };
}

/** The messages of these do not name the remedy, and other families have no field for a hint. */
const hinted: ReadonlySet<string> = new Set(["speech_off", "voice_not_found", "transcription_model_not_found"]);

function paramOf(error: GatewayError): string | null {
  return error.param ?? (error.code === "model_not_found" ? "model" : null);
}

const shapes: Readonly<Record<Dialect, (error: CompatError, status: number) => object>> = {
  compat: (error) => ({ error }),
  responses: (error) => ({ error }),
  messages: (error, status) => ({ type: "error", error: { ...error, type: anthropicType(status) } }),
  native: ({ message }) => ({ error: message }),
};

const anthropicTypes: ReadonlyMap<number, string> = new Map([
  [401, "authentication_error"],
  [403, "permission_error"],
  [404, "not_found_error"],
  [413, "request_too_large"],
  [429, "rate_limit_error"],
  [503, "overloaded_error"],
  [529, "overloaded_error"],
]);

function anthropicType(status: number): string {
  return anthropicTypes.get(status) ?? (status < 500 ? "invalid_request_error" : "api_error");
}

/** Failures of this kind come again, however often one asks. */
const lasting: ReadonlySet<string> = new Set(["internal", "model_load_failed"]);

/**
 * When to try again, and whether at all: clients made with OpenAI's generator repeat every 409, 429 and 5xx by themselves
 * unless `x-should-retry` forbids it.
 */
export function errorHeaders(thrown: unknown): Record<string, string> {
  const error = toGatewayError(thrown);
  const headers: Record<string, string> = {};
  const repeated = error.status === 409 || error.status === 429 || error.status >= 500;
  if (repeated && (error.reaction === "stall" || lasting.has(error.code))) headers["x-should-retry"] = "false";
  else if (error.retryAfterMs !== undefined) headers["retry-after"] = String(Math.ceil(error.retryAfterMs / 1000));
  else if (error.status === 503) headers["retry-after"] = "5";
  return headers;
}

/**
 * An error in the middle of a stream, when the status has been sent: a frame that the family's clients take for one. `sequence` is
 * its number, where the family's events have one.
 */
export function frameOf(dialect: Dialect, { body }: RenderedError, sequence = 0): string {
  if (dialect === "native") return `${JSON.stringify(body)}\n`;
  if (dialect === "compat") return `data: ${JSON.stringify(body)}\n\n`;
  if (dialect === "messages") return `event: error\ndata: ${JSON.stringify(body)}\n\n`;
  // The documented event has its members at the top; OpenAI's own client takes only one with `error` for an error.
  const { error } = body as { readonly error: CompatError };
  const { message, code, param } = error;
  const event = { type: "error", sequence_number: sequence, code, message, param, error };
  return `event: error\ndata: ${JSON.stringify(event)}\n\n`;
}

interface EngineError {
  readonly error?: { readonly code?: unknown; readonly message?: unknown; readonly type?: unknown };
}

/** The engine's codes are numbers or missing; clients of the compatible family expect a word. */
const engineCodes: ReadonlyMap<string, string> = new Map([
  ["exceed_context_size_error", "context_length_exceeded"],
  ["invalid_request_error", "invalid_request"],
  ["not_found_error", "not_found"],
  ["not_supported_error", "not_supported"],
  ["unavailable_error", "router_unavailable"],
  ["authentication_error", "upstream_failed"],
  ["permission_error", "upstream_failed"],
]);

/** What the engine refuses with 500 or 501, though it is the request that does not suit the model. */
const incapable: readonly (readonly [pattern: RegExp, message: string])[] = [
  [/does not support embeddings|^Pooling type 'none'/, "this model does not support embeddings"],
  [/does not support reranking/, "this model does not support reranking"],
  [/does not support logits computation/, "this model does not support chat or completion: it is for embeddings"],
  [/^Infill is not supported/, "this model does not support infill: it has no tokens for it"],
  [/^image input is not supported/, "this model does not support images"],
  [/^audio input is not supported/, "this model does not support audio"],
  [/^video input is not supported/, "this model does not support videos"],
];

/** An error answer of the engine in the family's shape; its other fields (`n_ctx`, …) are kept. */
export function renderEngineError(dialect: Dialect, status: number, text: string): RenderedError {
  const error = parseEngineError(text);
  const told =
    typeof error?.message === "string" ? error.message : text.slice(0, 500) || `the engine answered ${status}`;
  const cannot = incapable.find(([pattern]) => pattern.test(told))?.[1];
  if (cannot !== undefined) {
    const kind = { message: cannot, type: "invalid_request_error", param: null, code: "not_capable" };
    return { status: 400, body: shapes[dialect](kind, 400) };
  }
  const missing = /^'([\w.]+)' is required$/.exec(told)?.[1];
  const seen = missing === undefined ? seenStatus(status) : 400;
  const ownType = typeof error?.type === "string" ? error.type : "server_error";
  const type = missing === undefined ? ownType : "invalid_request_error";
  const param = missing ?? /^Field '([\w.]+)':/.exec(told)?.[1] ?? null;
  const code = engineCodes.get(type) ?? (seen < 500 ? "invalid_request" : "upstream_failed");
  return { status: seen, body: shapes[dialect]({ ...error, message: told, type, param, code }, seen) };
}

function seenStatus(status: number): number {
  // Our own key is wrong there: the client's is not the matter.
  return status === 401 || status === 403 ? 502 : status;
}

function parseEngineError(text: string): EngineError["error"] | undefined {
  const { error } = { ...(parseJson(text) as { readonly error?: unknown } | null) };
  if (typeof error === "string") return { message: error };
  return typeof error === "object" && error !== null ? error : undefined;
}
