// The answers of Ollama's GET /api/tags, GET /api/ps and POST /api/show, from plain facts about models. Pure.
import type { GgufDetails } from "../../../core/gguf-facts.ts";
import type { JsonObject } from "./fields.ts";

export interface ModelFacts {
  readonly id: string;
  /** Bytes of all its files. */
  readonly size: number;
  /** Milliseconds since the epoch. */
  readonly modifiedAt: number;
  /** SHA-256 in hex. */
  readonly digest: string;
  /** The architecture that the file names: `llama`, `gemma3`. */
  readonly family?: string;
  /** `7.6B` */
  readonly parameterSize?: string;
  /** `Q4_K_M` */
  readonly quantization?: string;
  /** The context size in force. */
  readonly contextLength?: number;
  /** What it can do, in Ollama's words; absent where its file could not be read. */
  readonly capabilities?: readonly string[];
}

/** Clients take anything beyond a century for "for ever". The year 9999 overflows in those that turn it to local time. */
const never = "2318-01-01T00:00:00Z";

const contextOf = ({ contextLength: context_length }: ModelFacts): object =>
  context_length === undefined ? {} : { context_length };

function detailsOf(model: ModelFacts): JsonObject {
  return {
    parent_model: "",
    format: "gguf",
    family: model.family ?? "",
    families: model.family === undefined ? null : [model.family],
    parameter_size: model.parameterSize ?? "",
    quantization_level: model.quantization ?? "",
    ...contextOf(model),
  };
}

/** By llama.cpp's number of the way in which the weights are stored; a dash for those that are gone. */
const fileTypes = (
  "F32 F16 Q4_0 Q4_1 - - - Q8_0 Q5_0 Q5_1 Q2_K Q3_K_S Q3_K_M Q3_K_L Q4_K_S Q4_K_M Q5_K_S Q5_K_M Q6_K IQ2_XXS IQ2_XS " +
  "Q2_K_S IQ3_XS IQ3_XXS IQ1_S IQ4_NL IQ3_S IQ3_M IQ2_S IQ2_M IQ4_XS IQ1_M BF16"
).split(" ");

/** The quantization: the tag where that is one, else by the file. */
export function quantizationOf(tag: string, fileType: number | null): string {
  if (/^(?:I?Q\d|TQ\d|BF16|F16|F32|MXFP4|NVFP4)/i.test(tag)) return tag;
  const named = fileTypes[fileType ?? -1] ?? "-";
  return named === "-" ? tag : named;
}

function entryOf(model: ModelFacts): JsonObject {
  const { id, size, digest } = model;
  return { name: id, model: id, size, digest, details: detailsOf(model) };
}

/** One element of `models` in the answer of /api/tags. */
export function tagEntry(model: ModelFacts): JsonObject {
  const { modifiedAt, capabilities } = model;
  return {
    ...entryOf(model),
    modified_at: new Date(modifiedAt).toISOString(),
    ...(capabilities && { capabilities }),
  };
}

/** One element of `models` in the answer of /api/ps. `expiresAt`: when it is unloaded (ms since the epoch); null: never. */
export function psEntry(model: ModelFacts, expiresAt: number | null): JsonObject {
  return {
    ...entryOf(model),
    expires_at: expiresAt === null ? never : new Date(expiresAt).toISOString(),
    // The engine does not report it.
    size_vram: 0,
    ...contextOf(model),
  };
}

export interface ShowFacts {
  readonly model: ModelFacts;
  /** `owner/name` */
  readonly repo: string;
  /** null: the file could not be read. */
  readonly details: GgufDetails | null;
  /** Of the vision projector beside the model. */
  readonly projector: GgufDetails | null;
  readonly capabilities: readonly string[];
  /** Trained context in tokens. */
  readonly nCtxTrain: number | null;
}

export function showBody(facts: ShowFacts): JsonObject {
  const { model, details, projector, capabilities } = facts;
  const template = templateOf(details);
  const parameters = model.contextLength === undefined ? "" : parameterLine("num_ctx", model.contextLength);
  return {
    ...(details?.license && { license: details.license }),
    modelfile: modelfileOf(model, template),
    parameters,
    template,
    system: "",
    details: detailsOf(model),
    model_info: modelInfo(facts),
    ...(projector && { projector_info: valuesOf(projector) }),
    capabilities,
    modified_at: new Date(model.modifiedAt).toISOString(),
    ...(facts.nCtxTrain !== null && { n_ctx_train: facts.nCtxTrain }),
  };
}

function parameterLine(name: string, value: number): string {
  return `${name.padEnd(30)} ${value}`;
}

/** Editors that complete code look for `.Suffix`, Ollama's word for it, to see whether a model fills gaps in. */
const insertNote = "{{- /* .Prompt and .Suffix: a gap is filled in with the model's own tokens for it */ -}}";

function templateOf(details: GgufDetails | null): string {
  const template = details?.template ?? "";
  return details?.hasFimTokens ? `${template}${template === "" ? "" : "\n"}${insertNote}` : template;
}

function modelfileOf(model: ModelFacts, template: string): string {
  return [
    "# Made by Model Gateway from the model's files; no model can be built from it.",
    `FROM ${model.id}`,
    ...(template === "" ? [] : [`TEMPLATE """${template}"""`]),
    ...(model.contextLength === undefined ? [] : [`PARAMETER num_ctx ${model.contextLength}`]),
    "",
  ].join("\n");
}

/**
 * The metadata as the file has it, but for the context: editors fill it, or ask for it with every chat, so it is the one in
 * force. Arrays, which are the vocabulary mostly, are null, as Ollama has them.
 */
function modelInfo({ model, repo, details, nCtxTrain }: ShowFacts): JsonObject {
  const context = model.contextLength ?? nCtxTrain;
  const architecture = details?.architecture ?? model.family;
  const parameters = details?.parameterCount ?? null;
  return {
    ...(details && valuesOf(details)),
    ...(architecture !== undefined && { "general.architecture": architecture }),
    "general.basename": details?.basename ?? repo.slice(repo.indexOf("/") + 1).replace(/-GGUF$/i, ""),
    ...(parameters !== null && { "general.parameter_count": parameters }),
    ...(architecture !== undefined && context !== null && { [`${architecture}.context_length`]: context }),
  };
}

function valuesOf({ values }: GgufDetails): JsonObject {
  return Object.fromEntries(values);
}
