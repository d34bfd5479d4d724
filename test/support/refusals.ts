// What a pure reader of requests refuses, and why.
import type { FastifySchemaValidationError } from "fastify";
import type { Schema, TypesOf } from "../../schemas/route.ts";
import { GatewayError } from "../../src/core/errors.ts";
import { compileFirst, refusalOf as refusalFor } from "../../src/http/server/validate.ts";

/** A body as Fastify hands it to the handler of a route with this schema. Throws `invalid_request`. */
export function checked<const S extends Schema>(schema: S, body: unknown): TypesOf<{ readonly body: S }>["Body"] {
  const fits = compileFirst({ schema, method: "POST", url: "/", httpPart: "body" });
  const found = fits(body ?? null);
  if (typeof found === "object" && "error" in found)
    throw refusalFor(found.error as FastifySchemaValidationError[], "body");
  return body as TypesOf<{ readonly body: S }>["Body"];
}

/** The message of the `invalid_request` that the call throws; undefined: it throws none. Throws any other error. */
export function refusalOf(call: () => unknown): string | undefined {
  try {
    call();
    return undefined;
  } catch (error) {
    if (error instanceof GatewayError && error.code === "invalid_request") return error.message;
    throw error;
  }
}
