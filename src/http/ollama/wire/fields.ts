// Reads the fields of a request's body one by one; what is not what it must be is refused by the name of its field.
// Pure; of the fields it knows only by which name a model goes.
import { GatewayError } from "../../../core/errors.ts";
import { isJsonObject } from "../../../core/merge-patch.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

export type Parsed<T> = (T & { readonly ok: true }) | { readonly ok: false; readonly message: string };

/** A field of the request is not what it must be; the message names it. */
class FieldError extends Error {
  override readonly name = "FieldError";
}

export function refuse(field: string, must: string): never {
  throw new FieldError(`${field} ${must}`);
}

export function stringOf(value: unknown, field: string): string {
  return typeof value === "string" ? value : refuse(field, "must be a string");
}

export function numberOf(value: unknown, field: string): number {
  return typeof value === "number" && Number.isFinite(value) ? value : refuse(field, "must be a number");
}

export function booleanOf(value: unknown, field: string): boolean {
  return typeof value === "boolean" ? value : refuse(field, "must be true or false");
}

export function listOf(value: unknown, field: string): readonly unknown[] {
  return Array.isArray(value) ? value : refuse(field, "must be an array");
}

/** Clients of different ages call it `model` or `name`; some send both, the same. */
export function modelNameOf(body: JsonObject): string {
  for (const field of ["model", "name"]) {
    const name = stringOf(body[field] ?? "", field);
    if (name !== "") return name;
  }
  return refuse("model", "is required");
}

/** The request in `body`, a parsed JSON value; where a field is not what it must be, a message that names it. */
export function parseBody<T extends object>(body: unknown, translate: (body: JsonObject) => T): Parsed<T> {
  try {
    return { ok: true, ...(isJsonObject(body) ? translate(body) : refuse("the body", "must be a JSON object")) };
  } catch (error) {
    if (error instanceof FieldError) return { ok: false, message: error.message };
    throw error;
  }
}

/** A request that was read; one that was not is refused. */
export function taken<T>(request: Parsed<T>): T {
  if (!request.ok) throw new GatewayError("invalid_request", request.message);
  return request;
}
