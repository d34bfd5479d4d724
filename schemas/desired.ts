// The routes of the desired document, the loop and the journal: their queries and bodies.
import type { FromSchema } from "json-schema-to-ts";
import { appliedSchema } from "./applied.ts";
import { documentSchema } from "./document.ts";
import { findingsSchema, sourceSchema } from "./plan.ts";
import { exact, flag, integer, list, maybe, open, success, text } from "./shapes.ts";
import { removalSchema } from "./status.ts";

const { $schema: _dialect, ...documentShape } = documentSchema;

/** The document as a part of other schemas. */
export const documentBodySchema = { ...documentShape, title: "Document", examples: [{ version: 1 }] } as const;

const waiting = {
  wait: flag("Answer once it is reconciled."),
  timeout: {
    type: "number",
    exclusiveMinimum: 0,
    maximum: 86_400,
    description: "Seconds to wait, above 0 and up to 86400.",
    examples: [60],
  },
} as const;

const offline = { offline: flag("Do not ask the hub for the sizes of what the plan pulls.") } as const;

export const planQuerySchema = exact({}, offline);

const changing = { dryRun: flag("Answer with the plan and change nothing."), ...offline, ...waiting } as const;

export const changeQuerySchema = exact({}, changing);

export type ChangeQuery = FromSchema<typeof changeQuerySchema>;

export const putQuerySchema = exact(
  {},
  {
    ...changing,
    apply: flag(
      "The body is a gateway.yaml (`application/yaml`): it becomes the applied file, and is merged as a save of the watched file is.",
    ),
    revision: {
      ...text("a commit, tag or other name: letters, digits and _ . / : + @ -, and no address with a password"),
      minLength: 1,
      maxLength: 200,
      pattern: "^(?!.*://.*@)[A-Za-z0-9_][A-Za-z0-9_./:+@-]*$",
      examples: ["3f2a9c1"],
    },
  },
);

export type PutQuery = FromSchema<typeof putQuerySchema>;

export const reconcileQuerySchema = exact(
  {},
  {
    ...waiting,
    cacheGone: flag(
      "The model cache is missing or empty on purpose; its models are fetched again. Else one that went is waited for.",
    ),
  },
);

const eventId = text(
  "The id of an event: replay what is still kept of what came after it, as the header Last-Event-ID does. `0`: all that is kept.",
);

export const eventsQuerySchema = open({}, { since: { ...eventId, examples: ["5f0c1d7a-42"] } });

export const mergePatchSchema = {
  title: "DocumentPatch",
  description:
    "A JSON merge patch (RFC 7396) of the document. `models` may also be an object by id: null takes a model out.",
  type: "object",
  examples: [{ context: { default: 8192 } }],
} as const;

/** Only after a wait. */
const outcome = {
  converged: flag(
    "Everything is as the document says; of a reconcile, gateway.yaml is in force, too. Only after a wait.",
  ),
  findings: findingsSchema,
} as const;

const difference = exact(
  {
    path: { ...text(), examples: ["context.default"] },
    setBy: { ...text(), examples: ["http:PATCH /api/desired"] },
  },
  { desired: {}, file: {}, at: maybe(text("ISO 8601.")) },
);

export const desiredSchema = {
  title: "Desired",
  ...exact(
    {
      generation: integer("Moves with each change of the document."),
      document: documentBodySchema,
      applied: appliedSchema,
      differsFromFile: list(difference, "What differs from the applied file, and who set it."),
      removals: list(removalSchema),
    },
    outcome,
  ),
} as const;

export type DesiredBody = FromSchema<typeof desiredSchema>;

export const reconciledSchema = {
  title: "Reconciled",
  ...exact({ ok: success, generation: integer() }, { ...outcome, source: sourceSchema }),
} as const;

export type ReconciledBody = FromSchema<typeof reconciledSchema>;

export const livezSchema = { title: "Live", ...exact({ status: { const: "ok" } }) } as const;

export const readyzSchema = {
  title: "Readiness",
  ...exact({
    status: { enum: ["ok", "unready"] },
    reason: text("`Serving`, `Starting`, `ShuttingDown`, or that of `RouterReady` or `TooFewWorkers`."),
    message: text(),
  }),
} as const;

export const modelReadySchema = {
  title: "ModelReadiness",
  ...exact({
    model: text("Its id."),
    status: { enum: ["ok", "unready"] },
    reason: text("`Loaded`, `OnDemand`, `ShuttingDown`, or why it is not ready."),
    message: text(),
  }),
} as const;

/** The data of one server-sent event of the journal; its `id:` and `event:` lines carry id and type. */
export const eventDataSchema = { title: "EventData", ...open({ at: text("ISO 8601.") }) } as const;

export type EventData = FromSchema<typeof eventDataSchema>;

export const openApiSchema = { title: "OpenApi", ...open({ openapi: text(), paths: { type: "object" } }) } as const;
