// Checks values against the schemas of the table of operations.
import assert from "node:assert/strict";
import { Ajv2020, type ValidateFunction } from "ajv/dist/2020.js";
import type { Schema } from "../../schemas/route.ts";

const ajv = new Ajv2020({ strict: false, allErrors: true, validateFormats: false });
const compiled = new Map<string, ValidateFunction>();

/** What is wrong with a value, or nothing. */
export function problemsOf(schema: Schema, value: unknown): string {
  const text = JSON.stringify(schema);
  let validate = compiled.get(text);
  if (!validate) {
    // By its own copy: the same object must not be compiled twice under one `$id`, and titles repeat.
    validate = ajv.compile(JSON.parse(text) as Schema);
    compiled.set(text, validate);
  }
  return validate(value) ? "" : ajv.errorsText(validate.errors);
}

export function assertFits(schema: Schema, value: unknown, what: string): void {
  const problems = problemsOf(schema, value);
  assert.equal(problems, "", `${what}: ${problems}\n${JSON.stringify(value)}`);
}

/** Every schema inside a schema, itself included. */
export function* partsOf(schema: Schema): Generator<Schema, void, undefined> {
  yield schema;
  for (const [keyword, value] of Object.entries(schema)) {
    if (keyword === "properties")
      for (const each of Object.values(value as Record<string, Schema>)) yield* partsOf(each);
    else if (["anyOf", "oneOf", "allOf"].includes(keyword)) for (const each of value as Schema[]) yield* partsOf(each);
    else if (["items", "additionalProperties"].includes(keyword) && typeof value === "object" && value !== null)
      yield* partsOf(value as Schema);
  }
}
