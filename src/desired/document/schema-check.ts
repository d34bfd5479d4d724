// Whether a value fits the document's schema. The bundle has the code that ajv makes of it in place of this module (build.cjs):
// to load ajv and have it compile the schema took 60 ms of each start and of each `diff`.
import { Ajv } from "ajv";
import { type DocumentInput, documentSchema } from "../../../schemas/document.ts";

/** @public For build.cjs. */
export const ajv = new Ajv({
  allErrors: true,
  // `type: [a, b]` is what the preset's values need.
  allowUnionTypes: true,
  // The preset's options are named, and all have one type.
  allowMatchingProperties: true,
  verbose: true,
  // A test checks our schema by the meta-schema.
  meta: false,
  validateSchema: false,
  code: { source: true, esm: true },
});

export const validate = ajv.compile<DocumentInput>(documentSchema);
