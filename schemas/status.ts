// What the gateway tells of itself: status and conditions, as they go over the wire.
import type { FromSchema } from "json-schema-to-ts";
import { heldActionSchema, runningActionSchema, sourceSchema } from "./plan.ts";

const conditionSchema = {
  title: "Condition",
  type: "object",
  additionalProperties: false,
  required: ["type", "status", "reason", "message", "observedGeneration", "lastTransitionTime"],
  properties: {
    type: { type: "string", examples: ["Ready"] },
    status: { enum: ["True", "False", "Unknown"] },
    reason: { type: "string", description: "CamelCase, for programs." },
    message: { type: "string", description: "For people: what is the matter, and what to do." },
    observedGeneration: { type: "integer" },
    lastTransitionTime: { type: "string", description: "ISO 8601; moves only when `status` changes." },
  },
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
  type: "object",
  additionalProperties: false,
  required: ["address", "endpoint", "latencyMs", "version", "devices", "conditions"],
  properties: {
    address: { type: "string", description: "As the document names it." },
    endpoint: { type: ["string", "null"], description: "The address that its name means and the engine is given." },
    latencyMs: { type: ["number", "null"], description: "To connect to it, when that was tried last." },
    version: { type: ["string", "null"], description: "Of its protocol.", examples: ["8.0.0"] },
    devices: {
      description: "Its memory when no model used it last; it serves one client, so it is not asked meanwhile.",
      type: ["array", "null"],
      items: {
        type: "object",
        additionalProperties: false,
        required: ["freeBytes", "totalBytes"],
        properties: { freeBytes: { type: "integer" }, totalBytes: { type: "integer" } },
      },
    },
    conditions: { type: "array", items: conditionSchema, description: "`Reachable` and `InUse`." },
  },
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

const gatewayProperties = {
  version: { type: "string" },
  id: { type: "string", description: "Of this run of the gateway: tells it from others, and changes with each start." },
  ready: { type: "boolean" },
} as const;

/** What a stranger may see, and the part of it that everybody sees. */
export const shortStatusSchema = {
  title: "ShortStatus",
  description: "What `/status` tells where a license key is needed and none was sent.",
  type: "object",
  additionalProperties: false,
  required: ["gateway", "router", "rpc"],
  properties: {
    gateway: {
      type: "object",
      additionalProperties: false,
      required: ["version", "id", "ready"],
      properties: gatewayProperties,
    },
    router: {
      type: "object",
      additionalProperties: false,
      required: ["connected"],
      properties: { connected: { type: "boolean", description: "The connection check." } },
    },
    rpc: {
      type: "object",
      additionalProperties: false,
      required: ["mode"],
      properties: { mode: { enum: ["single", "rpc"] } },
    },
  },
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
  description: "A model whose files are being deleted because somebody asked for it.",
  type: "object",
  additionalProperties: false,
  required: ["id", "requestedAt", "by"],
  properties: {
    id: { type: "string" },
    requestedAt: { type: "string", description: "ISO 8601." },
    by: { type: "string" },
  },
} as const;

const speechEngineSchema = {
  anyOf: [
    {
      title: "SpeechEngineStatus",
      type: "object",
      additionalProperties: false,
      required: ["choice", "running", "phase", "pid", "inFlight", "crashes"],
      properties: {
        choice: { type: "string", description: "The model's file, or the voice, that the document names." },
        running: { type: ["string", "null"], description: "The one that it runs with." },
        phase: { type: "string", examples: ["ready"] },
        pid: { type: ["integer", "null"] },
        inFlight: { type: "integer", description: "Answers under way and in line." },
        crashes: { type: "integer" },
      },
    },
    { type: "null" },
  ],
} as const;

const exampleStatus = {
  gateway: { version: "0.1.0", id: "7f3a1c5e9b2d4f60", startedAt: "2026-01-31T12:00:00.000Z", ready: true },
  router: { connected: true, phase: "ready", pid: 4711, binary: "llama-server", crashes: 0 },
  rpc: { mode: "single", minWorkers: 0, warning: null, workers: [] },
  speech: {
    transcription: { choice: "ggml-base.en.bin", running: null, phase: "stopped", pid: null, inFlight: 0, crashes: 0 },
    synthesis: null,
  },
  sync: "Synced",
  health: "Healthy",
  generation: 3,
  observedGeneration: 3,
  source: {
    path: "state/gateway.yaml",
    valid: true,
    reason: "Applied",
    message: "state/gateway.yaml is applied",
    problems: [],
  },
  conditions: [],
  models: [],
  running: [],
  planned: [],
  inFlight: { "ggml-org/gemma-3-270m-it-GGUF:Q8_0": 1 },
  waiting: [{ model: "ggml-org/gemma-3-270m-it-GGUF:Q8_0", requests: 2, oldestMs: 1500, for: "drain" }],
  removals: [],
} as const;

export const statusSchema = {
  title: "Status",
  type: "object",
  additionalProperties: false,
  required: [
    "gateway",
    "router",
    "rpc",
    "speech",
    "sync",
    "health",
    "generation",
    "observedGeneration",
    "source",
    "conditions",
    "models",
    "running",
    "planned",
    "inFlight",
    "waiting",
    "removals",
  ],
  properties: {
    gateway: {
      type: "object",
      additionalProperties: false,
      required: ["version", "id", "startedAt", "ready"],
      properties: { ...gatewayProperties, startedAt: { type: "string", description: "ISO 8601." } },
    },
    router: {
      type: "object",
      additionalProperties: false,
      required: ["connected", "phase", "pid", "binary", "crashes"],
      properties: {
        connected: { type: "boolean", description: "The connection check." },
        phase: { type: "string", examples: ["ready"] },
        pid: { type: ["integer", "null"] },
        binary: { type: ["string", "null"] },
        crashes: { type: "integer" },
      },
    },
    rpc: {
      type: "object",
      additionalProperties: false,
      required: ["mode", "minWorkers", "warning", "workers"],
      properties: {
        mode: { enum: ["single", "rpc"] },
        minWorkers: { type: "integer", description: "With fewer workers no model is loaded." },
        warning: { type: ["string", "null"], description: "What everybody who uses RPC mode should know." },
        workers: {
          type: "array",
          items: workerSchema,
        },
      },
    },
    speech: {
      type: "object",
      description: "null: off.",
      additionalProperties: false,
      required: ["transcription", "synthesis"],
      properties: { transcription: speechEngineSchema, synthesis: speechEngineSchema },
    },
    sync: { enum: ["Synced", "OutOfSync", "Unknown"] },
    health: { enum: ["Healthy", "Progressing", "Degraded", "Suspended"] },
    generation: { type: "integer", description: "Of the document." },
    observedGeneration: { type: "integer", description: "Of the document that the last pass worked on." },
    source: sourceSchema,
    conditions: { type: "array", items: conditionSchema },
    models: {
      type: "array",
      items: {
        title: "ModelStatus",
        type: "object",
        additionalProperties: false,
        required: ["id", "desired", "conditions"],
        properties: {
          id: { type: "string" },
          desired: { type: "boolean", description: "The document names it." },
          conditions: { type: "array", items: conditionSchema },
        },
      },
    },
    running: { type: "array", items: runningActionSchema },
    planned: { type: "array", items: heldActionSchema },
    inFlight: {
      type: "object",
      description: "Answers under way, by model.",
      additionalProperties: { type: "integer" },
    },
    waiting: {
      type: "array",
      description: "Requests that wait for a model, those who wait longest first.",
      items: {
        title: "Waiting",
        type: "object",
        additionalProperties: false,
        required: ["model", "requests", "oldestMs", "for"],
        properties: {
          model: { type: "string" },
          requests: { type: "integer" },
          oldestMs: { type: "integer", description: "How long the oldest of them has waited." },
          for: {
            enum: ["load", "drain", "room", "router", "workers", "size", "turn"],
            description:
              "load: it, or another model before it, is being loaded; drain: a change waits for its answers under way; room: every place for a loaded model is taken; router; workers: of RPC mode; size: another context size comes first; turn: it has enough to do, or another model is to have its place.",
          },
        },
      },
    },
    removals: { type: "array", items: removalSchema },
  },
  examples: [exampleStatus],
} as const;

export type StatusBody = FromSchema<typeof statusSchema>;
