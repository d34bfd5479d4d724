// The file that was applied last, as it goes over the wire.
import { exact, text } from "./shapes.ts";

const nullable = (description: string) => ({ type: ["string", "null"], description }) as const;

const appliedFileSchema = {
  title: "AppliedFile",
  description: "The file that was applied last: gateway.yaml, or a text that a call gave.",
  ...exact({
    sha256: nullable("Of its bytes, hex; null where an older version applied it."),
    revision: nullable("As the call named it."),
    by: { ...text("Who applied it."), examples: ["file:ed5a9c4a35cb", "http:PUT /api/desired"] },
    at: nullable("ISO 8601."),
  }),
} as const;

/** Null: no file was applied yet. */
export const appliedSchema = { anyOf: [appliedFileSchema, { type: "null" }] } as const;
