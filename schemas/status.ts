// Status and conditions of the gateway, as they go over the wire.
import type { FromSchema } from "json-schema-to-ts";
import { appliedSchema } from "./applied.ts";
import { byDeviceSchema, needOrNullSchema } from "./memory.ts";
import { heldActionSchema, runningActionSchema, sourceSchema } from "./plan.ts";
import { exact, flag, integer, list, maybe, number, text } from "./shapes.ts";

const conditionSchema = {
  title: "Condition",
  ...exact({
    type: { ...text(), examples: ["Ready"] },
    status: { enum: ["True", "False", "Unknown"] },
    reason: text("CamelCase, for programs."),
    message: text("For people: what is the matter, and what to do."),
    observedGeneration: integer(),
    lastTransitionTime: text("ISO 8601; moves only when `status` changes."),
  }),
} as const;

const workerSchema = {
  title: "WorkerStatus",
  ...exact({
    address: text("As the document names it."),
    endpoint: maybe(text("The address that its name means and the engine is given.")),
    latencyMs: maybe(number("To connect to it, when that was tried last.")),
    version: { ...maybe(text("Of its protocol.")), examples: ["8.0.0"] },
    devices: {
      description: "Its memory when no model used it last; it serves one client, so it is not asked meanwhile.",
      type: ["array", "null"],
      items: exact({ freeBytes: integer(), totalBytes: integer() }),
    },
    conditions: list(conditionSchema, "`Reachable` and `InUse`."),
  }),
} as const;

const version = text();
const id = text("Id of this run of the gateway; each start has another.");
const ready = flag();
const connected = flag("The connection check.");
const mode = { enum: ["single", "rpc"] } as const;

export const shortStatusSchema = {
  title: "ShortStatus",
  description: "What `/status` answers where a license key is needed and none was sent.",
  ...exact({
    gateway: exact({ version, id, ready }),
    router: exact({ connected }),
    rpc: exact({ mode }),
  }),
} as const;

export type ShortStatusBody = FromSchema<typeof shortStatusSchema>;

export const removalSchema = {
  title: "Removal",
  description: "A model whose files are being deleted by request.",
  ...exact({ id: text(), requestedAt: text("ISO 8601."), by: text() }),
} as const;

const speechEngineSchema = {
  title: "SpeechEngineStatus",
  ...exact({
    choice: text("The model's file, or the voice, that the document names."),
    running: maybe(text("The one that it runs with.")),
    phase: { ...text(), examples: ["ready"] },
    pid: maybe(integer()),
    inFlight: integer("Requests under way and queued."),
    crashes: integer(),
  }),
} as const;

const speechEngineOrOff = { anyOf: [speechEngineSchema, { type: "null" }] } as const;

const runtimeSchema = {
  title: "ModelRuntime",
  ...exact({
    bytes: integer("Of its files."),
    contextLength: maybe(integer("Tokens that the router gives it; null: not known.")),
    state: { ...text("`unloaded`, `loading`, `loaded` or `sleeping`."), examples: ["loaded"] },
    pid: maybe(integer("Of its process; null: it has none, or it is not known.")),
    memoryBytes: maybe(integer("Of its process, with what is swapped out.")),
    need: needOrNullSchema,
  }),
} as const;

const modelStatusSchema = {
  title: "ModelStatus",
  ...exact(
    { id: text(), desired: flag("The document names it."), conditions: list(conditionSchema) },
    {
      runtime: {
        anyOf: [runtimeSchema, { type: "null" }],
        description: "Its files and its process; null: it is not in the model cache, or clients cannot use it.",
      },
      variants: list(text(), "Names of its variants, which share its process."),
      keepAlive: { type: ["string", "number"], description: "This and the next two: as the document sets them." },
      maxQueue: integer(),
      priority: integer(),
    },
  ),
} as const;

const waitingSchema = {
  title: "Waiting",
  ...exact({
    model: text(),
    requests: integer(),
    oldestMs: integer("How long the oldest of them has waited."),
    for: {
      enum: ["load", "drain", "room", "router", "workers", "size", "turn"],
      description:
        "load: it, or another model before it, is being loaded; drain: a change waits for its answers under way; room: every model slot is taken; router; workers: of RPC mode; size: another context size comes first; turn: it has enough to do, or another model is to have its slot.",
    },
  }),
} as const;

export const statusSchema = {
  title: "Status",
  ...exact({
    gateway: exact({ version, id, startedAt: text("ISO 8601."), ready }),
    router: exact({
      connected,
      phase: { ...text(), examples: ["ready"] },
      pid: maybe(integer()),
      binary: maybe(text()),
      crashes: integer(),
    }),
    rpc: exact({
      mode,
      minWorkers: integer("With fewer workers no model is loaded."),
      warning: maybe(text("The risk of RPC mode.")),
      workers: list(workerSchema),
    }),
    speech: {
      ...exact({ transcription: speechEngineOrOff, synthesis: speechEngineOrOff }),
      description: "null: off.",
    },
    sync: { enum: ["Synced", "OutOfSync", "Unknown"] },
    health: { enum: ["Healthy", "Progressing", "Degraded", "Suspended"] },
    generation: integer("Of the document."),
    documentHash: text(
      "SHA-256 of the document, with the changes of calls: the same on gateways with the same document.",
    ),
    observedGeneration: integer("Of the document that the last pass worked on."),
    lastPass: maybe(text("When the last pass over everything ended, ISO 8601.")),
    applied: appliedSchema,
    source: sourceSchema,
    conditions: list(conditionSchema),
    models: list(modelStatusSchema),
    running: list(runningActionSchema),
    planned: list(heldActionSchema),
    memory: exact({ limits: { ...byDeviceSchema, description: "Bytes that models may take, by device." } }),
    inFlight: {
      type: "object",
      description: "Answers under way, by model.",
      additionalProperties: { type: "integer" },
    },
    waiting: list(waitingSchema, "Requests that wait for a model, those who wait longest first."),
    removals: list(removalSchema),
  }),
} as const;

export type StatusBody = FromSchema<typeof statusSchema>;

export const logsQuerySchema = exact(
  {},
  {
    model: {
      ...text("A model, or `router`, `whisper-server`, `speech`; without it, all of them by time."),
      minLength: 1,
    },
    tail: {
      ...integer("How many of the last lines; without it, 1000."),
      minimum: 0,
      maximum: 100_000,
    },
    follow: flag("Go on with new lines until the client leaves."),
  },
);
