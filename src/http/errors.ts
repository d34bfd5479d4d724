// One mapper per family: the same error in the shape that the family's clients read.
import { type GatewayError, toGatewayError } from "../core/errors.ts";

export type Family = "gateway" | "compat" | "native";

export interface RenderedError {
  readonly status: number;
  readonly body: object;
}

export function renderError(family: Family, thrown: unknown): RenderedError {
  const error = toGatewayError(thrown);
  // What a defect says may hold anything; it goes into the log, not to a client.
  const message = error.code === "internal" ? "internal error" : error.message;
  return { status: error.status, body: errorBody(family, error, message) };
}

function errorBody(family: Family, error: GatewayError, message: string): object {
  switch (family) {
    case "gateway":
      return { error: { code: error.code, message, hint: error.hint } };
    case "compat":
      return {
        error: {
          message,
          type: error.status < 500 ? "invalid_request_error" : "server_error",
          param: null,
          code: error.code,
        },
      };
    case "native":
      return { error: message };
    default:
      return family satisfies never;
  }
}

/** An error in the middle of a stream, when the status has been sent: a frame that the family's clients take for one. */
export function errorFrame(family: "compat" | "native", thrown: unknown): string {
  const text = JSON.stringify(renderError(family, thrown).body);
  return family === "compat" ? `data: ${text}\n\n` : `${text}\n`;
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

/** An error answer of the engine in the family's shape; its other fields (`n_ctx`, …) are kept. */
export function renderEngineError(family: "compat" | "native", status: number, text: string): RenderedError {
  const error = parseEngineError(text);
  const message =
    typeof error?.message === "string" ? error.message : text.slice(0, 500) || `the engine answered ${status}`;
  const type = typeof error?.type === "string" ? error.type : "server_error";
  // Our own key is wrong there: the client's is not the matter.
  const seen = status === 401 || status === 403 ? 502 : status;
  if (family === "native") return { status: seen, body: { error: message } };
  return {
    status: seen,
    body: {
      error: {
        ...error,
        message,
        type,
        param: null,
        code: engineCodes.get(type) ?? (seen < 500 ? "invalid_request" : "upstream_failed"),
      },
    },
  };
}

function parseEngineError(text: string): EngineError["error"] | undefined {
  try {
    const { error } = JSON.parse(text) as { readonly error?: unknown };
    if (typeof error === "string") return { message: error };
    return typeof error === "object" && error !== null ? error : undefined;
  } catch {
    return undefined;
  }
}
