// The desired document as people write it. The source of its types, of the validator and of gateway.schema.json.
import type { FromSchema } from "json-schema-to-ts";
import { presetKeyPattern, presetOptions } from "./preset-options.ts";
import { requestMembers } from "./request-members.ts";
import { exact, flag, integer, list, text } from "./shapes.ts";

const modelIdSchema = {
  ...text("OWNER/NAME:TAG, the tag being a quant (Q4_K_M) or a file's name without .gguf."),
  pattern: "^[A-Za-z0-9][\\w.-]*/[A-Za-z0-9][\\w.-]*:[\\w+@][\\w.+@ -]*$",
  examples: ["ggml-org/gemma-3-270m-it-GGUF:Q8_0"],
} as const;

const ctxSizeSchema = {
  ...integer("Context size in tokens. The engine runs none below 256: less is raised to that."),
  minimum: 1,
  maximum: 16_777_216,
} as const;

export const autoPattern = "^auto$";

const presetSchema = {
  type: "object",
  description: "Further llama-server options for this model, without leading dashes.",
  propertyNames: { pattern: presetKeyPattern },
  // For editors to complete. Which others may stand here depends on --preset-allow, so the program checks them.
  properties: Object.fromEntries([...presetOptions.keys()].map((key) => [key, {}])) as Record<never, object>,
  patternProperties: { "": { type: ["string", "number", "boolean"] } },
} as const;

/** Only gateway.yaml may set what names a file or another model's files. */
const file = (description: string) => ({ ...text(description), minLength: 1, maxLength: 1000 }) as const;

const aliasSchema = {
  ...text("A name: letters, digits and _ . / : + @ -"),
  maxLength: 200,
  pattern: "^[A-Za-z0-9_][A-Za-z0-9_./:+@-]*$",
} as const;

const adapterSchema = exact(
  { source: file("A GGUF file, in this file's folder or below.") },
  { scale: { type: "number", description: "Default: 1." } },
);

const variantSchema = exact(
  {
    name: aliasSchema,
    set: {
      type: "object",
      description: "Members of requests that the client has not sent, by their names in the engine's API.",
      // For editors to complete; others are taken too.
      properties: Object.fromEntries(requestMembers) as Record<never, object>,
    },
  },
  { force: { ...list(text(), "Members of `set` that replace those of the client."), uniqueItems: true } },
);

export const modelSchema = exact(
  { id: modelIdSchema },
  {
    ctxSize: {
      ...ctxSizeSchema,
      type: ["integer", "string"],
      pattern: autoPattern,
      description: `${ctxSizeSchema.description} auto: the largest that fits into memory beside the pinned models.`,
    },
    aliases: {
      ...list(aliasSchema, "Further names by which clients may ask for this model."),
      uniqueItems: true,
      maxItems: 100,
    },
    variants: {
      ...list(variantSchema, "Further names, each with request settings of its own. They share the model's process."),
      maxItems: 100,
    },
    preset: presetSchema,
    chatTemplate: file("A Jinja file, in this file's folder or below."),
    lora: { ...list(adapterSchema, "LoRA adapters to load with the model."), minItems: 1, maxItems: 32 },
    draft: { ...modelIdSchema, description: "Another model of this document, for speculative decoding." },
    mmproj: file("A GGUF projector for images and audio, in this file's folder or below."),
    keep: flag("Never pruned, also after it has left this list."),
    pinned: flag(
      "Once loaded it stays so: unloaded neither for another model nor for lack of use. It is not loaded by that.",
    ),
    keepAlive: {
      type: ["string", "number"],
      description:
        "How long the idle model stays loaded, unless a request sets it: 5m, 1h30m, seconds; -1: until its model slot is needed. Absent: --keep-alive.",
    },
    maxQueue: {
      ...integer("Requests for it, queued and running; the next one gets 503 `busy`. Absent: --queue-limit."),
      minimum: 1,
      maximum: 1_000_000,
    },
    priority: {
      ...integer("Who gets a model slot first. 0 if absent; a model of a lower one that waits catches up with time."),
      minimum: -10,
      maximum: 10,
    },
    source: { ...text("A local .gguf file, relative to this file's folder."), minLength: 1 },
    revision: {
      ...text("A branch, tag or commit of the repository."),
      maxLength: 255,
      pattern: "^[\\w][\\w./-]*$",
    },
  },
);

export const rpcSchema = exact(
  {},
  {
    mode: { enum: ["single", "rpc"], description: "single: this machine only; rpc: with the workers." },
    workers: {
      ...list(
        { type: "string", pattern: "^[A-Za-z0-9.-]+:[0-9]{1,5}$" },
        "HOST:PORT of each ggml-rpc-server. The protocol is neither authenticated nor encrypted.",
      ),
      uniqueItems: true,
      maxItems: 64,
    },
    minWorkers: {
      ...integer(
        "With fewer workers that answer, no model is loaded in RPC mode; 0 runs models on this machine alone.",
      ),
      minimum: 0,
      maximum: 1000,
    },
    allowPublicWorkers: flag(
      "Allow workers with public addresses: every machine on the way can read the traffic and use them.",
    ),
  },
);

const transcriptionModelSchema = {
  ...text("A ggml model of whisper.cpp, by its file's name or in short: base.en."),
  pattern: "^(ggml-)?[A-Za-z0-9_][A-Za-z0-9._-]*$",
  maxLength: 110,
  examples: ["ggml-base.en.bin", "base.en"],
} as const;

const voiceSchema = {
  ...text("A voice's id."),
  pattern: "^[^\\s/\\\\.]+$",
  maxLength: 200,
  examples: ["en_US-lessac-medium"],
} as const;

export const speechSchema = {
  ...exact(
    {},
    {
      transcription: {
        ...exact({ model: transcriptionModelSchema }),
        description: "Speech to text, by whisper-server.",
      },
      synthesis: { ...exact({ voice: voiceSchema }), description: "Text to speech, with a Piper voice." },
      start: {
        enum: ["lazy", "now"],
        description: "lazy: an engine starts with the first request and ends when it is idle; now: it always runs.",
      },
    },
  ),
  description: "Speech to text and text to speech. Absent: off.",
} as const;

/** `2GiB`, `1.5 GiB`, `512MiB` */
export const sizePattern = "^[0-9]+(\\.[0-9]+)? ?(KiB|MiB|GiB|TiB)$";
const size = { type: ["integer", "string"], minimum: 0, pattern: sizePattern } as const;
const sizes = (description: string) =>
  ({
    ...size,
    type: ["integer", "string", "object"],
    description,
    additionalProperties: size,
    maxProperties: 64,
  }) as const;

const memorySchema = {
  ...exact(
    {},
    {
      reserve: sizes(
        "Memory that models leave free: bytes or a size such as 2GiB, for every device or by device (Host is main memory). Absent: a sixteenth of it, at most 1GiB.",
      ),
      budget: sizes("Memory that all loaded models may take together, for every device or by device."),
    },
  ),
  description: "How much memory models may take. A device's name is matched ignoring case.",
} as const;

export const documentSchema = {
  $schema: "http://json-schema.org/draft-07/schema#",
  title: "gateway.yaml",
  description: "What should be true on this machine: Model Gateway makes it so.",
  ...exact(
    { version: { const: 1, description: "The format of this document." } },
    {
      context: exact(
        {},
        { default: { ...ctxSizeSchema, description: "[*] in router.preset.ini; without it the router decides." } },
      ),
      models: {
        ...list({ anyOf: [modelIdSchema, modelSchema] }, "The models to have: missing ones are pulled."),
        maxItems: 500,
      },
      prune: flag("Delete models that this gateway pulled and this document no longer names."),
      pruneAfter: {
        ...integer("Seconds that a model stays after it has left this document; 60 if absent."),
        minimum: 0,
        maximum: 31_536_000,
      },
      allowEmpty: flag("Let an empty list of models prune everything."),
      suspend: flag("Observe and plan, but apply nothing; the router keeps running."),
      memory: memorySchema,
      rpc: rpcSchema,
      speech: speechSchema,
    },
  ),
} as const;

/** The document as written: short forms allowed, everything but `version` optional. */
export type DocumentInput = FromSchema<typeof documentSchema>;
