// Disk use of the models and of speech, and what of it is unused.
import type { FromSchema } from "json-schema-to-ts";
import { needOrNullSchema } from "./memory.ts";
import { amount, exact, flag, list, text } from "./shapes.ts";

const partial = exact({
  bytes: amount(),
  total: { type: ["integer", "null"], description: "Bytes of the whole model; null: not known." },
});

const diskModelSchema = {
  title: "DiskModel",
  ...exact(
    {
      id: text(),
      present: flag("All of its files are there."),
      desired: flag("The document names it."),
      documentName: {
        type: ["string", "null"],
        description: "The id by which the document names it, which may be another name of it; null: it does not.",
      },
      ours: flag("This gateway pulled or imported it."),
      loaded: flag(),
      lastUsed: { type: ["string", "null"], description: "ISO 8601; null: never, as far as is remembered." },
      files: amount(),
      bytes: amount("Of its files, the projector too."),
      staleBytes: amount("Of its files, what lies in older revisions only."),
      memory: needOrNullSchema,
      partial: { description: "What an interrupted pull left to resume.", anyOf: [partial, { type: "null" }] },
    },
    { variants: list(text(), "Names of its variants in the document.") },
  ),
} as const;

const diskSpeechSchema = {
  title: "DiskSpeech",
  ...exact({
    kind: { enum: ["transcription", "synthesis"] },
    name: text("A voice's id, or a transcription model's file name."),
    repo: { type: ["string", "null"], description: "OWNER/NAME." },
    present: flag(),
    desired: flag("The document names it."),
    ours: flag("This gateway pulled it."),
    running: flag("An engine runs with it."),
    bytes: amount("Of its files."),
    license: { type: ["string", "null"], description: "Of a voice, as in its model card; null: none is given." },
  }),
} as const;

const totals = exact({
  bytes: amount("Everything in the cache, each file once."),
  modelBytes: amount(),
  speechBytes: amount("Of what speech has in the cache."),
  staleBytes: amount(),
  orphanBytes: amount("Blobs that nothing links."),
  partialBytes: amount(),
  collectableBytes: amount("What collecting would free now."),
  freeBytes: { type: ["integer", "null"], description: "Free on the disk." },
});

export const diskSchema = {
  title: "Disk",
  description: "Every model of the cache and of the document, what speech has there, and the sums.",
  ...exact({
    models: list(diskModelSchema),
    speech: list(diskSpeechSchema, "Voices and transcription models."),
    totals,
    unreadable: list(text(), "Repositories whose folder cannot be read."),
  }),
} as const;

export type DiskBody = FromSchema<typeof diskSchema>;

export const collectQuerySchema = exact({}, { dryRun: flag("`false`: delete; by default it is only reported.") });

const why = { reason: text("CamelCase."), message: text() } as const;

const garbageSchema = {
  title: "Garbage",
  ...exact({
    repo: text("OWNER/NAME"),
    kind: { enum: ["revision", "blob", "partial", "speech"] },
    path: text("Inside the model cache."),
    files: amount("Links and blobs."),
    bytes: amount("What becomes free."),
    ...why,
  }),
} as const;

export const collectedSchema = {
  title: "Collected",
  ...exact({
    dryRun: flag("Nothing was deleted."),
    items: list(garbageSchema, "What goes, or went."),
    skipped: list(exact({ repo: text(), ...why }), "Repositories where something could go, and is left for now."),
    deletedFiles: amount(),
    freedBytes: amount(),
  }),
} as const;

export type CollectedBody = FromSchema<typeof collectedSchema>;
