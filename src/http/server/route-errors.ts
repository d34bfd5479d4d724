// Error codes that groups of routes may answer with, and those that every route may.
import type { FastifyContextConfig } from "fastify";
import type { RouteSchema } from "../../../schemas/route.ts";
import type { ErrorCode } from "../../core/error-catalog.ts";

/** Of a route that needs a model to run. `invalid_request` also carries the engine's own refusals. */
export const generationErrors = [
  "invalid_request",
  "model_not_found",
  "not_capable",
  "suspended",
  "model_load_failed",
  "load_failing",
  "too_large",
  "busy",
  "upstream_failed",
  "router_unavailable",
  "engine_missing",
  "engine_failed",
  "wait_timeout",
] as const;

/** Of a route that changes the document and waits for the outcome. */
export const changeErrors = [
  "invalid_request",
  "invalid_document",
  "file_managed",
  "model_not_found",
  "suspended",
  "state_unwritable",
  "preset_unwritable",
  "preset_foreign",
  "router_unavailable",
  "engine_missing",
  "engine_failed",
  "wait_timeout",
] as const;

export const hubErrors = ["hub_unreachable", "hub_denied", "hub_not_found", "hub_rate_limited"] as const;

export const pullErrors = [
  ...changeErrors,
  ...hubErrors,
  "quant_not_found",
  "quant_ambiguous",
  "checksum_mismatch",
  "disk_full",
  "cache_unwritable",
  "not_a_model",
] as const;

export interface AnsweringRoute {
  readonly method: string;
  readonly schema: Pick<RouteSchema, "querystring">;
  readonly config?: Pick<FastifyContextConfig, "licenseKey" | "errors" | "anyMediaType">;
}

/** Every code that a route may answer with, except `internal`, which is a defect. */
export function errorCodesOf({ method, schema, config = {} }: AnsweringRoute): ErrorCode[] {
  const codes = new Set<ErrorCode>(["forbidden_origin", ...(config.errors ?? [])]);
  if (config.licenseKey === undefined || config.licenseKey === "network")
    codes.add("unauthorized").add("scope_missing");
  if (schema.querystring) codes.add("invalid_request");
  if (method !== "GET") {
    // A body is read even where none is asked for.
    codes.add("shutting_down").add("invalid_request").add("body_too_large");
    if (config.anyMediaType !== true) codes.add("unsupported_media_type");
  }
  return [...codes].sort();
}
