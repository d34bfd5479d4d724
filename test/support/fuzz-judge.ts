// Says what is wrong with an answer to a request of the fuzz test, by the table of operations and the catalog of errors.
import { compatErrorSchema, gatewayErrorSchema, messagesErrorSchema, nativeErrorSchema } from "../../schemas/errors.ts";
import { type ErrorCode, errorCatalog } from "../../src/core/error-catalog.ts";
import type { FuzzRequest } from "./fuzz-requests.ts";
import type { WireAnswer } from "./fuzz-wire.ts";
import type { Content, Operation } from "./operations.ts";
import { problemsOf } from "./schemas.ts";

const errorSchemas = {
  own: gatewayErrorSchema,
  front: gatewayErrorSchema,
  compat: compatErrorSchema,
  llama: compatErrorSchema,
  native: nativeErrorSchema,
  messages: messagesErrorSchema,
} as const;

/** The engine's own word for a prompt that does not fit. */
const engineCodes = new Set(["context_length_exceeded"]);
/** Of every route, whatever it is asked. */
const generalCodes = ["not_found", "method_not_allowed", "unauthorized", "forbidden_origin"];

/** What is wrong, or null. */
export function judge(request: FuzzRequest, answer: WireAnswer): string | null {
  const { operation, isRouted, key, method } = request;
  const { status, text } = answer;
  if (text.includes('"FST_')) return `status ${status} in the framework's own words`;
  if (method === "HEAD" || method === "OPTIONS") return status === 500 || status === 502 ? `status ${status}` : null;
  if (isRouted && key !== "valid" && operation.key === "required" && status !== 401) return `status ${status}, not 401`;
  if (isRouted && key === "valid" && status === 401) return "refused in spite of its key";
  if (!isRouted) return status < 400 ? null : problemOfError(answer, Object.values(errorSchemas), null);
  const described = operation.responses.find((response) => response.status === status);
  if (described) return described.content.length === 0 ? null : problemOfBody(described.content, answer, operation);
  if (status < 400) return `status ${status} is not described`;
  // A router that ends at the root or at a longer path has the answer of another family.
  const codes = new Set([...operation.errors, ...generalCodes]);
  if (text === "" && status >= 500) return `status ${status} without a word`;
  return problemOfError(answer, [errorSchemas[operation.dialect ?? operation.family]], codes);
}

function problemOfError(
  { status, text }: WireAnswer,
  schemas: readonly object[],
  codes: ReadonlySet<string> | null,
): string | null {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    return `status ${status} with a body that is no JSON`;
  }
  const problems = schemas.map((schema) => problemsOf({ ...schema }, body));
  if (!problems.includes("")) return `status ${status}: ${problems.join(" or ")}`;
  const { error } = body as { readonly error: string | { readonly code?: string | null } };
  if (typeof error === "string") {
    if (error === "internal error") return "an internal error";
    return codes === null || [...codes].some((code) => statusOf(code) === status)
      ? null
      : `status ${status} is not described`;
  }
  const { code } = error;
  if (code === undefined || code === null) return codes === null ? null : "an error without a code";
  if (engineCodes.has(code)) return null;
  if (!(code in errorCatalog)) return `${code} is in no catalog`;
  if (code === "internal") return "an internal error";
  return codes === null || codes.has(code) ? null : `${code} is not described`;
}

function statusOf(code: string): number {
  return errorCatalog[code as ErrorCode].status;
}

function problemOfBody(content: readonly Content[], answer: WireAnswer, operation: Operation): string | null {
  const { contentType, text, left } = answer;
  const described = content.find(({ mediaType }) => contentType.startsWith(mediaType));
  if (!described) return `${contentType || "no type"} is not described`;
  if (left) return null;
  try {
    if (described.mediaType === "application/json") return problemsOf(described.schema, JSON.parse(text)) || null;
    if (described.mediaType === "application/x-ndjson") return problemOfLines(described, text);
    if (described.mediaType === "text/event-stream") return problemOfEvents(text, operation);
    return null;
  } catch (error) {
    return `a body that is none: ${error instanceof Error ? error.message : String(error)}`;
  }
}

function problemOfLines({ schema }: Content, text: string): string | null {
  const problems = text
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as unknown)
    .filter((record) => problemsOf(nativeErrorSchema, record) !== "")
    .map((record) => problemsOf(schema, record))
    .filter((problem) => problem !== "");
  return problems[0] ?? null;
}

/** A stream of the compatible family ends with its mark or with an error. */
function problemOfEvents(text: string, { id }: Operation): string | null {
  if (!/^(chatCompletions|completions)/.test(id)) return null;
  return /data: \[DONE\]\s*$/.test(text) || text.includes('data: {"error"') ? null : "a stream without an end";
}
