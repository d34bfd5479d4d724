// What will be done and what is being done, as it goes over the wire.
import type { FromSchema } from "json-schema-to-ts";

const actionProperties = {
  kind: { type: "string", examples: ["model.pull"] },
  key: { type: "string", description: "What it acts on; at most one action per key." },
  reason: { type: "string", description: "CamelCase." },
  message: { type: "string" },
  disrupts: { type: "array", items: { type: "string" }, description: "Models whose loaded instance it ends." },
  model: { type: "string" },
} as const;

const actionRequired = ["kind", "key", "reason", "message", "disrupts"] as const;

const actionSchema = {
  title: "Action",
  type: "object",
  additionalProperties: false,
  required: actionRequired,
  properties: actionProperties,
} as const;

const progressSchema = {
  title: "Progress",
  description: "How far an action is; bytes where it moves bytes.",
  type: "object",
  additionalProperties: false,
  required: ["phase", "completed", "total"],
  properties: {
    phase: { type: "string" },
    completed: { type: "number" },
    total: { type: "number" },
    file: { type: "string" },
    digest: { type: "string" },
    fileCompleted: { type: "number" },
    fileTotal: { type: "number" },
    bytesPerSecond: { type: "number", description: "Smoothed; 0 while nothing comes in." },
    secondsLeft: { type: ["number", "null"], description: "For the rest of it; null while nothing can be said." },
  },
} as const;

export const runningActionSchema = {
  title: "RunningAction",
  type: "object",
  additionalProperties: false,
  required: [...actionRequired, "lane", "startedAt", "progress"],
  properties: {
    ...actionProperties,
    lane: { enum: ["control", "transfer", "speech", "speech-transfer"] },
    startedAt: { type: ["string", "null"], description: "ISO 8601; null while it waits in its lane." },
    progress: { anyOf: [progressSchema, { type: "null" }] },
  },
} as const;

export const heldActionSchema = {
  title: "HeldAction",
  description: "An action that is due and not started.",
  type: "object",
  additionalProperties: false,
  required: [...actionRequired, "held", "because", "until"],
  properties: {
    ...actionProperties,
    held: { enum: ["suspended", "backoff", "stalled", "waiting", "room", "settling", "prune"] },
    because: { type: "string", description: "Why it is held." },
    until: { type: ["string", "null"], description: "ISO 8601: not before this." },
  },
} as const;

export const sourceSchema = {
  title: "Source",
  description: "How gateway.yaml stands.",
  type: "object",
  additionalProperties: false,
  required: ["path", "valid", "reason", "message", "problems"],
  properties: {
    path: { type: "string" },
    valid: { type: "boolean" },
    reason: { type: "string", description: "As the condition SourceValid has it." },
    message: { type: "string" },
    problems: {
      type: "array",
      items: {
        title: "SourceProblem",
        type: "object",
        additionalProperties: false,
        required: ["line", "column", "path", "message"],
        properties: {
          line: { type: "integer" },
          column: { type: "integer" },
          path: { type: "string", description: "Keys down to the fault." },
          message: { type: "string" },
        },
      },
    },
  },
} as const;

export const planSchema = {
  title: "Plan",
  description: "What will be done, and what cannot be.",
  type: "object",
  additionalProperties: false,
  required: ["generation", "converged", "actions", "running", "held", "unmanaged", "spared", "findings"],
  properties: {
    dryRun: { const: true, description: "Nothing was changed." },
    stateDir: { type: "string", description: "The gateway's state folder; not of a dry run." },
    source: sourceSchema,
    generation: { type: "integer" },
    converged: {
      type: "boolean",
      description: "Everything is as the document says, but for models that are pruned later.",
    },
    actions: { type: "array", items: actionSchema },
    running: { type: "array", items: runningActionSchema },
    held: { type: "array", items: heldActionSchema },
    unmanaged: {
      type: "array",
      items: { type: "string" },
      description: "Cached models that the document does not name.",
    },
    spared: {
      type: "array",
      items: { type: "string" },
      description: "Models that prune would delete, had they not left the document when a list of models was emptied.",
    },
    findings: {
      type: "object",
      description: "What the document asks for and cannot be had, by model.",
      additionalProperties: { type: "string" },
    },
  },
  examples: [
    { generation: 3, converged: true, actions: [], running: [], held: [], unmanaged: [], spared: [], findings: {} },
  ],
} as const;

export type PlanBody = FromSchema<typeof planSchema>;
