// What the models take on the disk, and what of it serves nobody.
import type { FromSchema } from "json-schema-to-ts";

const bytes = { type: "integer", minimum: 0 } as const;

const diskModelSchema = {
  title: "DiskModel",
  type: "object",
  additionalProperties: false,
  required: [
    "id",
    "present",
    "desired",
    "documentName",
    "ours",
    "loaded",
    "lastUsed",
    "files",
    "bytes",
    "sharedBytes",
    "staleBytes",
    "revisions",
    "partial",
  ],
  properties: {
    id: { type: "string" },
    present: { type: "boolean", description: "All of its files are there." },
    desired: { type: "boolean", description: "The document names it." },
    documentName: {
      type: ["string", "null"],
      description: "The id by which the document names it, which may be another name of it; null: it does not.",
    },
    ours: { type: "boolean", description: "This gateway pulled or imported it." },
    loaded: { type: "boolean" },
    lastUsed: { type: ["string", "null"], description: "ISO 8601; null: never, as far as is remembered." },
    files: { type: "integer", minimum: 0 },
    bytes: { ...bytes, description: "Of its files, the projector too." },
    sharedBytes: { ...bytes, description: "Of these, what something else links too: it stays when this model goes." },
    staleBytes: { ...bytes, description: "Of its files, what lies in older revisions only." },
    revisions: {
      type: "array",
      items: {
        type: "object",
        additionalProperties: false,
        required: ["commit", "refs", "current", "bytes"],
        properties: {
          commit: { type: "string" },
          refs: { type: "array", items: { type: "string" }, description: "Branches and tags that name it." },
          current: { type: "boolean", description: "The model is served from it." },
          bytes,
        },
      },
    },
    partial: {
      description: "What a pull that broke off left to go on from.",
      anyOf: [
        {
          type: "object",
          additionalProperties: false,
          required: ["bytes", "total"],
          properties: {
            bytes,
            total: { type: ["integer", "null"], description: "Bytes of the whole model; null: nobody knows." },
          },
        },
        { type: "null" },
      ],
    },
  },
} as const;

const diskSpeechSchema = {
  title: "DiskSpeech",
  type: "object",
  additionalProperties: false,
  required: ["kind", "name", "repo", "present", "desired", "ours", "running", "bytes", "copyBytes", "license"],
  properties: {
    kind: { enum: ["transcription", "synthesis"] },
    name: { type: "string", description: "A voice's id, or a transcription model's file name." },
    repo: { type: ["string", "null"], description: "OWNER/NAME; null: a voice that was put into its folder by hand." },
    present: { type: "boolean" },
    desired: { type: "boolean", description: "The document names it." },
    ours: { type: "boolean", description: "This gateway pulled it." },
    running: { type: "boolean", description: "An engine runs with it." },
    bytes: { ...bytes, description: "Of its files." },
    copyBytes: { ...bytes, description: "Of the copy in the state folder that the embedded engine reads." },
    license: { type: ["string", "null"], description: "Of a voice, as its model card says it; null: nothing is said." },
  },
} as const;

export const diskSchema = {
  title: "Disk",
  description: "Every model of the cache and of the document, what speech has there, and the sums.",
  type: "object",
  additionalProperties: false,
  required: ["models", "speech", "totals", "unreadable"],
  properties: {
    models: { type: "array", items: diskModelSchema },
    speech: { type: "array", items: diskSpeechSchema, description: "Voices and transcription models." },
    totals: {
      type: "object",
      additionalProperties: false,
      required: [
        "bytes",
        "modelBytes",
        "speechBytes",
        "staleBytes",
        "orphanBytes",
        "partialBytes",
        "collectableBytes",
        "freeBytes",
      ],
      properties: {
        bytes: { ...bytes, description: "Everything in the cache, each file once." },
        modelBytes: bytes,
        speechBytes: { ...bytes, description: "Of what speech has in the cache." },
        staleBytes: bytes,
        orphanBytes: { ...bytes, description: "Blobs that nothing links." },
        partialBytes: bytes,
        collectableBytes: { ...bytes, description: "What collecting would free now." },
        freeBytes: { type: ["integer", "null"], description: "Room left on the disk." },
      },
    },
    unreadable: { type: "array", items: { type: "string" }, description: "Repositories whose folder cannot be read." },
  },
  examples: [
    {
      models: [
        {
          id: "ggml-org/gemma-3-270m-it-GGUF:Q8_0",
          present: true,
          desired: true,
          documentName: "ggml-org/gemma-3-270m-it-GGUF:Q8_0",
          ours: true,
          loaded: false,
          lastUsed: "2026-01-31T12:00:00.000Z",
          files: 1,
          bytes: 291_545_088,
          sharedBytes: 0,
          staleBytes: 0,
          revisions: [{ commit: "0".repeat(40), refs: ["main"], current: true, bytes: 291_545_088 }],
          partial: null,
        },
      ],
      speech: [
        {
          kind: "synthesis",
          name: "en_US-lessac-medium",
          repo: "rhasspy/piper-voices",
          present: true,
          desired: true,
          ours: true,
          running: false,
          bytes: 63_206_530,
          copyBytes: 63_201_540,
          license: "https://www.cstr.ed.ac.uk/projects/blizzard/2013/lessac_blizzard2013/license.html",
        },
      ],
      totals: {
        bytes: 354_751_618,
        modelBytes: 291_545_088,
        speechBytes: 63_206_530,
        staleBytes: 0,
        orphanBytes: 0,
        partialBytes: 0,
        collectableBytes: 0,
        freeBytes: 50_000_000_000,
      },
      unreadable: [],
    },
  ],
} as const;

export type DiskBody = FromSchema<typeof diskSchema>;

export const collectQuerySchema = {
  type: "object",
  additionalProperties: false,
  properties: {
    dryRun: { type: "string", description: "`false`: delete; by default it is only told.", enum: ["true", "false"] },
  },
} as const;

const reasonProperties = {
  reason: { type: "string", description: "CamelCase." },
  message: { type: "string" },
} as const;

export const collectedSchema = {
  title: "Collected",
  type: "object",
  additionalProperties: false,
  required: ["dryRun", "items", "skipped", "deletedFiles", "freedBytes"],
  properties: {
    dryRun: { type: "boolean", description: "Nothing was deleted." },
    items: {
      type: "array",
      description: "What goes, or went.",
      items: {
        title: "Garbage",
        type: "object",
        additionalProperties: false,
        required: ["repo", "kind", "path", "files", "bytes", "reason", "message"],
        properties: {
          repo: { type: "string", description: "OWNER/NAME" },
          kind: { enum: ["revision", "blob", "partial", "speech"] },
          path: { type: "string", description: "Inside the model cache." },
          files: { type: "integer", minimum: 0, description: "Links and blobs." },
          bytes: { ...bytes, description: "What becomes free." },
          ...reasonProperties,
        },
      },
    },
    skipped: {
      type: "array",
      description: "Repositories where something could go, and is left for now.",
      items: {
        type: "object",
        additionalProperties: false,
        required: ["repo", "reason", "message"],
        properties: { repo: { type: "string" }, ...reasonProperties },
      },
    },
    deletedFiles: { type: "integer", minimum: 0 },
    freedBytes: bytes,
  },
  examples: [
    {
      dryRun: true,
      items: [
        {
          repo: "acme/alpha-GGUF",
          kind: "partial",
          path: `models--acme--alpha-GGUF/blobs/${"a".repeat(64)}.gw.incomplete`,
          files: 2,
          bytes: 4_000_000_000,
          reason: "AbandonedPartial",
          message: "an unfinished download of acme/alpha-GGUF:Q8_0, which nobody goes on with",
        },
      ],
      skipped: [],
      deletedFiles: 0,
      freedBytes: 0,
    },
  ],
} as const;

export type CollectedBody = FromSchema<typeof collectedSchema>;
