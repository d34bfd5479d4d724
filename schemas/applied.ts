// The file that was applied last, as it goes over the wire.
import type { FromSchema } from "json-schema-to-ts";
import { exact, maybe, text } from "./shapes.ts";

const appliedFileSchema = {
  title: "AppliedFile",
  description: "The file that was applied last: gateway.yaml, or a text that a call gave.",
  ...exact({
    sha256: maybe(text("Of its bytes, hex; null where an older version applied it.")),
    revision: maybe(text("As the call named it.")),
    by: { ...text("Who applied it."), examples: ["file:ed5a9c4a35cb", "http:PUT /api/desired"] },
    at: maybe(text("ISO 8601.")),
  }),
} as const;

export type AppliedFile = FromSchema<typeof appliedFileSchema>;

/** Null: no file was applied yet. */
export const appliedSchema = { anyOf: [appliedFileSchema, { type: "null" }] } as const;
