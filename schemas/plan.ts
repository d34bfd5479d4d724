// What will be done and what is being done, as it goes over the wire.
import type { FromSchema } from "json-schema-to-ts";
import { byDeviceSchema } from "./memory.ts";
import { exact, flag, integer, list, maybe, number, text } from "./shapes.ts";

const actionProperties = {
  kind: { ...text(), examples: ["model.pull"] },
  key: text("What it acts on; at most one action per key."),
  reason: text("CamelCase."),
  message: text(),
  disrupts: list(text(), "Models whose loaded instance it ends."),
} as const;

const ofModel = { model: text() } as const;

const actionSchema = { title: "Action", ...exact(actionProperties, ofModel) } as const;

const progressSchema = {
  title: "Progress",
  description: "How far an action is; bytes where it moves bytes.",
  ...exact(
    { phase: text(), completed: number(), total: number() },
    {
      file: text(),
      digest: text(),
      fileCompleted: number(),
      fileTotal: number(),
      bytesPerSecond: number("Smoothed; 0 while nothing comes in."),
      secondsLeft: maybe(number("For the rest of it; null while nothing can be said.")),
    },
  ),
} as const;

export const runningActionSchema = {
  title: "RunningAction",
  ...exact(
    {
      ...actionProperties,
      lane: { enum: ["control", "transfer", "speech", "speech-transfer"] },
      startedAt: maybe(text("ISO 8601; null while it waits in its lane.")),
      progress: { anyOf: [progressSchema, { type: "null" }] },
    },
    ofModel,
  ),
} as const;

export const heldActionSchema = {
  title: "HeldAction",
  description: "An action that is due and not started.",
  ...exact(
    {
      ...actionProperties,
      held: { enum: ["suspended", "backoff", "stalled", "waiting", "room", "settling", "prune", "writer"] },
      because: text("Why it is held."),
      until: maybe(text("ISO 8601: not before this.")),
    },
    ofModel,
  ),
} as const;

const fieldChangeSchema = {
  title: "FieldChange",
  ...exact({
    subject: text("A model's id, `[*]` for all models, `router`, or `speech/KIND`."),
    field: { ...text(), examples: ["ctx-size"] },
    from: maybe(text("null: not set, or not there.")),
    to: maybe(text("null: not set, or not there.")),
  }),
} as const;

const stepSchema = {
  title: "PlannedStep",
  description: "An action on the way to the document, in the expected order.",
  ...exact(
    {
      ...actionProperties,
      when: { enum: ["running", "now", "later"], description: "`later`: after the steps above it." },
      notBefore: maybe(text("ISO 8601: not before this, though all above is done.")),
      awaits: maybe(text("What it waits for that is no step.")),
      changes: list(fieldChangeSchema),
      bytes: maybe(integer("To download, copy or delete; null: none, or not known.")),
      ends: list(
        exact({
          model: text(),
          inFlight: integer("Responses that are awaited, and cut after `--drain-timeout`."),
          memoryBytes: maybe(integer("Of its process now; null: not known.")),
        }),
        "Loaded models whose instance it ends; they load again with their next request.",
      ),
    },
    ofModel,
  ),
} as const;

const planProblemSchema = {
  title: "PlanProblem",
  description: "What the document asks for and will not be had.",
  ...exact(
    { subject: text("A model's id, `rpc`, or the key of an action."), message: text() },
    { code: text("Of the error with which the action will fail."), hint: text() },
  ),
} as const;

const sum = exact({
  count: integer(),
  bytes: integer("Of those whose size is known."),
  unknown: integer("Of those whose size is not."),
});

const totalsSchema = {
  title: "PlanTotals",
  ...exact({
    steps: integer(),
    pull: sum,
    import: sum,
    delete: sum,
    reload: integer("Loaded models whose instance ends, other than by a deletion."),
    inFlight: integer("Responses that are awaited, and cut after `--drain-timeout`."),
    routerStarts: integer(),
    held: integer("Actions in `remaining`."),
    problems: integer(),
  }),
} as const;

const planMemorySchema = {
  title: "PlanMemory",
  description: "What the document's models need of memory, once the steps are done.",
  ...exact({
    limits: { ...byDeviceSchema, description: "Bytes that models may take, by device." },
    changes: list(
      exact({
        model: text(),
        from: maybe(integer("Bytes that it needs now; null: it is not here, or not known.")),
        to: maybe(integer("Bytes that it will need; null: not known.")),
        why: maybe(text("Why it is not known what it will need.")),
        fits: maybe(flag("Whether it fits into these limits alone; null: not known.")),
        onHub: flag("It is still on the hub: what it will need is estimated by the head of its file there."),
      }),
      "Models that the steps bring, or whose settings they change.",
    ),
    bytes: integer("Of all of the document's models whose need is known."),
    unknown: integer("Of those whose need is not."),
  }),
} as const;

const problemSchema = {
  title: "SourceProblem",
  ...exact({ line: integer(), column: integer(), path: text("Keys down to the fault."), message: text() }),
} as const;

export const sourceSchema = {
  title: "Source",
  description: "How gateway.yaml stands.",
  ...exact({
    path: text(),
    valid: flag(),
    reason: text("As the condition SourceValid has it."),
    message: text(),
    problems: list(problemSchema),
  }),
} as const;

/** By model. */
export const findingsSchema = {
  type: "object",
  description: "What the document asks for and cannot be had, by model.",
  additionalProperties: { type: "string" },
} as const;

export const planSchema = {
  title: "Plan",
  description: "What will be done, and what cannot be.",
  ...exact(
    {
      generation: integer(),
      converged: flag("Everything is as the document says, but for models that are pruned later."),
      steps: list(
        stepSchema,
        "Everything that will be done, if the world stays as observed; a pull that the hub was not asked about is expected to work.",
      ),
      complete: flag("The steps lead to the end; false: more follow that are not known."),
      remaining: list(heldActionSchema, "What is still held after the last step."),
      problems: list(planProblemSchema),
      hub: exact({
        asked: flag("Whether the hub was asked for files and sizes."),
        unanswered: list(exact({ question: text(), why: text() })),
      }),
      totals: totalsSchema,
      memory: { anyOf: [planMemorySchema, { type: "null" }], description: "null: it was not asked." },
      actions: list(actionSchema, "What is to be started now."),
      running: list(runningActionSchema),
      held: list(heldActionSchema, "What is held now."),
      unmanaged: list(text(), "Cached models that the document does not name."),
      spared: list(
        text(),
        "Models that prune would delete, had they not left the document when a list of models was emptied.",
      ),
      findings: findingsSchema,
    },
    {
      dryRun: { const: true, description: "Nothing was changed." },
      stateDir: text("The gateway's state folder; not of a dry run."),
      source: sourceSchema,
    },
  ),
} as const;

export type PlanBody = FromSchema<typeof planSchema>;
