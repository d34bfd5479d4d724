// Reads the fields of a request's body one by one; a field that is not what it must be is refused by its name
// (`invalid_request`). Pure.

import { GatewayError } from "../../../core/errors.ts";
import { isJsonObject } from "../../../core/json.ts";

export type JsonObject = Readonly<Record<string, unknown>>;

/** A field of the request is not what it must be; the message names it. */
export function refuse(field: string, must: string): never {
  throw new GatewayError("invalid_request", `${field} ${must}`);
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

/** A request's body, a parsed JSON value. */
export function objectOf(body: unknown): JsonObject {
  return isJsonObject(body) ? body : refuse("the body", "must be a JSON object");
}
