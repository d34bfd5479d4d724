// Status and conditions of the gateway, as they go over the wire.
import type { FromSchema } from "json-schema-to-ts";
import { heldActionSchema, runningActionSchema, sourceSchema } from "./plan.ts";
import { exact, flag, integer, list, text } from "./shapes.ts";

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
  examples: [
    {
      type: "Ready",
      status: "True",
      reason: "Ready",
      message: "everything is as the document says",
      observedGeneration: 3,
      lastTransitionTime: "2026-01-31T12:00:00.000Z",
    },
  ],
} as const;

const workerSchema = {
  title: "WorkerStatus",
  ...exact({
    address: text("As the document names it."),
    endpoint: { type: ["string", "null"], description: "The address that its name means and the engine is given." },
    latencyMs: { type: ["number", "null"], description: "To connect to it, when that was tried last." },
    version: { type: ["string", "null"], description: "Of its protocol.", examples: ["8.0.0"] },
    devices: {
      description: "Its memory when no model used it last; it serves one client, so it is not asked meanwhile.",
      type: ["array", "null"],
      items: exact({ freeBytes: integer(), totalBytes: integer() }),
    },
    conditions: list(conditionSchema, "`Reachable` and `InUse`."),
  }),
  examples: [
    {
      address: "192.168.1.20:50052",
      endpoint: "192.168.1.20:50052",
      latencyMs: 0.4,
      version: "8.0.0",
      devices: [{ freeBytes: 16_000_000_000, totalBytes: 16_000_000_000 }],
      conditions: [],
    },
  ],
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
  examples: [
    {
      gateway: { version: "0.1.0", id: "7f3a1c5e9b2d4f60", ready: true },
      router: { connected: true },
      rpc: { mode: "single" },
    },
  ],
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
    running: { type: ["string", "null"], description: "The one that it runs with." },
    phase: { ...text(), examples: ["ready"] },
    pid: { type: ["integer", "null"] },
    inFlight: integer("Requests under way and queued."),
    crashes: integer(),
  }),
} as const;

const speechEngineOrOff = { anyOf: [speechEngineSchema, { type: "null" }] } as const;

const modelStatusSchema = {
  title: "ModelStatus",
  ...exact({ id: text(), desired: flag("The document names it."), conditions: list(conditionSchema) }),
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
      pid: { type: ["integer", "null"] },
      binary: { type: ["string", "null"] },
      crashes: integer(),
    }),
    rpc: exact({
      mode,
      minWorkers: integer("With fewer workers no model is loaded."),
      warning: { type: ["string", "null"], description: "The risk of RPC mode." },
      workers: list(workerSchema),
    }),
    speech: {
      ...exact({ transcription: speechEngineOrOff, synthesis: speechEngineOrOff }),
      description: "null: off.",
    },
    sync: { enum: ["Synced", "OutOfSync", "Unknown"] },
    health: { enum: ["Healthy", "Progressing", "Degraded", "Suspended"] },
    generation: integer("Of the document."),
    observedGeneration: integer("Of the document that the last pass worked on."),
    source: sourceSchema,
    conditions: list(conditionSchema),
    models: list(modelStatusSchema),
    running: list(runningActionSchema),
    planned: list(heldActionSchema),
    inFlight: {
      type: "object",
      description: "Answers under way, by model.",
      additionalProperties: { type: "integer" },
    },
    waiting: list(waitingSchema, "Requests that wait for a model, those who wait longest first."),
    removals: list(removalSchema),
  }),
  examples: [
    {
      gateway: { version: "0.1.0", id: "7f3a1c5e9b2d4f60", startedAt: "2026-01-31T12:00:00.000Z", ready: true },
      router: { connected: true, phase: "ready", pid: 4711, binary: "llama-server", crashes: 0 },
      rpc: { mode: "single", minWorkers: 0, warning: null, workers: [] },
      speech: { transcription: null, synthesis: null },
      sync: "Synced",
      health: "Healthy",
      generation: 3,
      observedGeneration: 3,
      source: { path: "state/gateway.yaml", valid: true, reason: "Applied", message: "applied", problems: [] },
      conditions: [],
      models: [],
      running: [],
      planned: [],
      inFlight: { "ggml-org/gemma-3-270m-it-GGUF:Q8_0": 1 },
      waiting: [{ model: "ggml-org/gemma-3-270m-it-GGUF:Q8_0", requests: 2, oldestMs: 1500, for: "drain" }],
      removals: [],
    },
  ],
} as const;

export type StatusBody = FromSchema<typeof statusSchema>;
