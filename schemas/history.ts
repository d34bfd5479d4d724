// The routes of the history: the last generations of the document, and what drifted from it.
import type { FromSchema } from "json-schema-to-ts";
import { documentBodySchema } from "./desired.ts";
import { exact, integer, list, maybe, text } from "./shapes.ts";

const entryProperties = {
  generation: integer(),
  at: text("ISO 8601."),
  by: { ...text("What made it: a file, a route."), examples: ["file:ed5a9c4a35cb", "http:PATCH /api/desired"] },
  key: maybe(text("Name of the license key.")),
  peer: maybe(text("Address of the client's socket.")),
  client: maybe(text("Its program (`User-Agent`).")),
  file: {
    anyOf: [
      exact({ sha256: maybe(text("Of its bytes, hex.")), revision: maybe(text("As the call named it.")) }),
      { type: "null" },
    ],
    description: "The file that was applied by it.",
  },
  removal: maybe(text("The model whose files were to be deleted.")),
  fields: list(text(), "Fields that changed."),
  outcome: { enum: ["pending", "converged", "stuck", "superseded"] },
  ms: maybe(integer("From the edit to the outcome.")),
  problem: maybe(text("Why it is stuck, or not in force yet.")),
} as const;

const entrySchema = { title: "HistoryEntry", ...exact(entryProperties) } as const;

const driftSchema = {
  title: "Drift",
  description: "What was changed outside the document.",
  ...exact({
    at: text("When it was noticed; ISO 8601."),
    generation: integer("The document that it differed from."),
    what: list(
      exact({ kind: text(), key: text(), reason: text(), message: text() }),
      "The actions that mend it; the first 20.",
    ),
    mendedAt: maybe(text("ISO 8601; null while it is not.")),
  }),
} as const;

export const historySchema = {
  title: "History",
  ...exact({
    generation: integer("That of now."),
    entries: list(entrySchema, "The last 100 generations, the newest first."),
    drifts: list(driftSchema, "The last 100, the newest first."),
  }),
} as const;

export type HistoryBody = FromSchema<typeof historySchema>;

const change = exact(
  { field: { ...text(), examples: ["context.default"] } },
  { before: { description: "Absent: it was not there." }, after: { description: "Absent: it is not there." } },
);

export const generationSchema = {
  title: "Generation",
  ...exact({
    ...entryProperties,
    changes: list(change, "Secrets are redacted."),
    document: documentBodySchema,
  }),
} as const;

export type GenerationBody = FromSchema<typeof generationSchema>;

export const resetSchema = {
  title: "Reset",
  ...exact(
    {},
    {
      fields: {
        ...list(text(), "Paths as in `differsFromFile`, or parts of these. Absent: all."),
        minItems: 1,
        maxItems: 500,
      },
    },
  ),
  examples: [{ fields: ["context.default"] }],
} as const;
