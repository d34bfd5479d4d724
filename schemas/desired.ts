// The routes of the desired document, the loop and the journal: their queries and bodies.
import type { FromSchema } from "json-schema-to-ts";
import { documentSchema } from "./document.ts";
import { sourceSchema } from "./plan.ts";
import { removalSchema } from "./status.ts";

const { $schema: _dialect, ...documentShape } = documentSchema;

/** The document as a part of other schemas. */
export const documentBodySchema = { ...documentShape, title: "Document", examples: [{ version: 1 }] } as const;

const yes = { type: "string", description: "`true` or `false`.", examples: ["true"] } as const;
const timeout = {
  type: "number",
  exclusiveMinimum: 0,
  maximum: 86_400,
  description: "Seconds to wait, above 0 and up to 86400.",
  examples: [60],
} as const;

export const changeQuerySchema = {
  type: "object",
  additionalProperties: false,
  properties: {
    dryRun: { ...yes, description: "`true`: answer with the plan and change nothing." },
    wait: { ...yes, description: "`true`: answer once it is reconciled." },
    timeout,
  },
} as const;

export type ChangeQuery = FromSchema<typeof changeQuerySchema>;

export const reconcileQuerySchema = {
  type: "object",
  additionalProperties: false,
  properties: {
    wait: changeQuerySchema.properties.wait,
    timeout,
    cacheGone: {
      ...yes,
      description:
        "`true`: the model cache is missing or empty on purpose; its models are fetched again. Else one that went is waited for.",
    },
  },
} as const;

export const eventsQuerySchema = {
  type: "object",
  properties: {
    since: {
      type: "string",
      description:
        "The id of an event: replay what is still kept of what came after it, as the header Last-Event-ID does. `0`: all that is kept.",
      examples: ["5f0c1d7a-42"],
    },
  },
} as const;

export const mergePatchSchema = {
  title: "DocumentPatch",
  description:
    "A JSON merge patch (RFC 7396) of the document. `models` may also be an object by id: null takes a model out.",
  type: "object",
  examples: [{ context: { default: 8192 } }],
} as const;

const outcome = {
  converged: {
    type: "boolean",
    description:
      "Everything is as the document says; of a reconcile, gateway.yaml is in force, too. Only after a wait.",
  },
  findings: {
    type: "object",
    description: "What the document asks for and cannot be had, by model; only after a wait.",
    additionalProperties: { type: "string" },
  },
} as const;

export const desiredSchema = {
  title: "Desired",
  type: "object",
  additionalProperties: false,
  required: ["generation", "document", "differsFromFile", "removals"],
  properties: {
    generation: { type: "integer", description: "Moves with each change of the document." },
    document: documentBodySchema,
    differsFromFile: {
      type: "array",
      description: "What differs from the file, and who set it.",
      items: {
        type: "object",
        additionalProperties: false,
        required: ["path", "setBy"],
        properties: {
          path: { type: "string", examples: ["context.default"] },
          setBy: { type: "string", examples: ["http:PATCH /api/desired"] },
          desired: {},
          file: {},
          at: { type: ["string", "null"], description: "ISO 8601." },
        },
      },
    },
    removals: { type: "array", items: removalSchema },
    ...outcome,
  },
  examples: [{ generation: 3, document: { version: 1 }, differsFromFile: [], removals: [] }],
} as const;

export type DesiredBody = FromSchema<typeof desiredSchema>;

export const reconciledSchema = {
  title: "Reconciled",
  type: "object",
  additionalProperties: false,
  required: ["ok", "generation"],
  properties: { ok: { const: true }, generation: { type: "integer" }, ...outcome, source: sourceSchema },
  examples: [{ ok: true, generation: 3 }],
} as const;

export type ReconciledBody = FromSchema<typeof reconciledSchema>;

export const livezSchema = {
  title: "Live",
  type: "object",
  additionalProperties: false,
  required: ["status"],
  properties: { status: { const: "ok" } },
  examples: [{ status: "ok" }],
} as const;

export const readyzSchema = {
  title: "Readiness",
  type: "object",
  additionalProperties: false,
  required: ["status", "reason", "message"],
  properties: {
    status: { enum: ["ok", "unready"] },
    reason: {
      type: "string",
      description: "`Serving`, `Starting`, `ShuttingDown`, or that of `RouterReady` or `TooFewWorkers`.",
    },
    message: { type: "string" },
  },
  examples: [{ status: "ok", reason: "Serving", message: "chats can be served" }],
} as const;

/** The data of one server-sent event of the journal; its `id:` and `event:` lines carry id and type. */
export const eventDataSchema = {
  title: "EventData",
  type: "object",
  required: ["at"],
  properties: { at: { type: "string", description: "ISO 8601." } },
} as const;

export type EventData = FromSchema<typeof eventDataSchema>;

export const openApiSchema = {
  title: "OpenApi",
  type: "object",
  required: ["openapi", "paths"],
  properties: { openapi: { type: "string" }, paths: { type: "object" } },
  examples: [{ openapi: "3.1.0", paths: {} }],
} as const;
