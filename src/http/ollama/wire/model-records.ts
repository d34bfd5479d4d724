// The answers of Ollama's GET /api/tags, GET /api/ps and POST /api/show, from what is known of models. Pure.
import { type Capability, capabilitiesOf } from "../../../cache/layout/capabilities.ts";
import { type GgufDetails, parameterSize } from "../../../core/gguf-facts.ts";
import type { Variant } from "../../../desired/document/document.ts";
import type { CachedModel } from "../../../plan/observed.ts";
import type { JsonObject } from "./requests.ts";

/** What lists have of a model's file. */
export interface FileFacts {
  readonly parameterCount: number | null;
  readonly capabilities: readonly Capability[];
}

/** As lists have it. */
export interface ListedModel {
  readonly model: CachedModel;
  /** The context size in force. */
  readonly contextLength: number | null;
  /** SHA-256 in hex. */
  readonly digest: string;
  /** null: its file could not be read. */
  readonly facts: FileFacts | null;
}

export interface ShownModel extends ListedModel {
  /** null: its file could not be read. */
  readonly details: GgufDetails | null;
  /** What it takes of memory, as it goes over the wire; null: not known. */
  readonly memory: JsonObject | null;
}

/** Clients take anything beyond a century for "for ever". The year 9999 overflows in those that turn it to local time. */
const never = "2318-01-01T00:00:00Z";

/** `hasProjector`: a vision projector is loaded along with it. */
export function factsOf(details: GgufDetails, hasProjector: boolean): FileFacts {
  return { parameterCount: details.parameterCount, capabilities: capabilitiesOf(details, hasProjector) };
}

const contextOf = ({ contextLength }: ListedModel): object =>
  contextLength === null ? {} : { context_length: contextLength };

function detailsOf(shown: ListedModel, variant: Variant | null): JsonObject {
  const { model, facts } = shown;
  return {
    parent_model: variant ? model.id : "",
    format: "gguf",
    family: model.architecture ?? "",
    families: model.architecture && [model.architecture],
    parameter_size: facts?.parameterCount ? parameterSize(facts.parameterCount) : "",
    quantization_level: quantizationOf(model.tag, model.fileType),
    ...contextOf(shown),
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

function entryOf(shown: ListedModel, name: string, variant: Variant | null = null): JsonObject {
  return { name, model: name, size: shown.model.bytes, digest: shown.digest, details: detailsOf(shown, variant) };
}

/** One element of `models` in the answer of /api/tags. */
export function tagEntry(shown: ListedModel, name: string, variant: Variant | null = null): JsonObject {
  const { model, facts } = shown;
  return {
    ...entryOf(shown, name, variant),
    modified_at: new Date(model.modifiedAt).toISOString(),
    ...(facts && { capabilities: facts.capabilities }),
  };
}

/** One element of `models` in the answer of /api/ps; `expiresAt` in ms since the epoch, null: never. */
export function psEntry(shown: ListedModel, expiresAt: number | null): JsonObject {
  return {
    ...entryOf(shown, shown.model.id),
    expires_at: expiresAt === null ? never : new Date(expiresAt).toISOString(),
    // The engine does not report it.
    size_vram: 0,
    ...contextOf(shown),
  };
}

/** The answer of /api/show; `projected`: what the vision projector's file says; `variant`: the one that was asked for. */
export function showBody(shown: ShownModel, projected: GgufDetails | null, variant: Variant | null = null): JsonObject {
  const { model, details, facts, contextLength, memory } = shown;
  const template = templateOf(details);
  const parameters = parametersOf(contextLength, variant);
  return {
    ...(details?.license && { license: details.license }),
    modelfile: modelfileOf(shown, template, parameters),
    parameters: parameters.map(([name, value]) => `${name.padEnd(30)} ${value}`).join("\n"),
    template,
    system: "",
    details: detailsOf(shown, variant),
    model_info: modelInfo(shown),
    ...(projected && { projector_info: valuesOf(projected) }),
    capabilities: facts?.capabilities ?? ["completion"],
    modified_at: new Date(model.modifiedAt).toISOString(),
    ...(model.nCtxTrain !== null && { n_ctx_train: model.nCtxTrain }),
    ...(memory && { memory }),
  };
}

/** Editors that complete code look for `.Suffix`, Ollama's word for it, to see whether a model fills gaps in. */
const insertNote = "{{- /* .Prompt and .Suffix: a gap is filled in with the model's own tokens for it */ -}}";

function templateOf(details: GgufDetails | null): string {
  const template = details?.template ?? "";
  return details?.hasFimTokens ? `${template}${template === "" ? "" : "\n"}${insertNote}` : template;
}

/** Of a list, such as `stop`, each item; a text in quotes, as Ollama has it. */
function parametersOf(contextLength: number | null, variant: Variant | null): readonly (readonly [string, string])[] {
  const context = contextLength === null ? [] : [["num_ctx", String(contextLength)] as const];
  const set = Object.entries(variant?.set ?? {}).flatMap(([name, value]) =>
    [value].flat().map((each) => [name, JSON.stringify(each)] as const),
  );
  return [...context, ...set];
}

function modelfileOf(
  { model }: ShownModel,
  template: string,
  parameters: readonly (readonly [string, string])[],
): string {
  return [
    "# Made by Model Gateway from the model's files; no model can be built from it.",
    `FROM ${model.id}`,
    ...(template === "" ? [] : [`TEMPLATE """${template}"""`]),
    ...parameters.map(([name, value]) => `PARAMETER ${name} ${value}`),
    "",
  ].join("\n");
}

/**
 * The metadata as the file has it, but for the context: editors fill it, or ask for it with every chat, so it is the one in
 * force. Arrays, which are the vocabulary mostly, are null, as Ollama has them.
 */
function modelInfo({ model, details, contextLength }: ShownModel): JsonObject {
  const context = contextLength ?? model.nCtxTrain;
  const architecture = details?.architecture ?? model.architecture;
  return {
    ...(details && valuesOf(details)),
    ...(architecture && { "general.architecture": architecture }),
    "general.basename": details?.basename ?? model.repo.slice(model.repo.indexOf("/") + 1).replace(/-GGUF$/i, ""),
    ...(details?.parameterCount && { "general.parameter_count": details.parameterCount }),
    ...(architecture && context !== null && { [`${architecture}.context_length`]: context }),
  };
}

function valuesOf({ values }: GgufDetails): JsonObject {
  return Object.fromEntries(values);
}
