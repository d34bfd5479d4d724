// The answer of Ollama's POST /api/show, made from a model's files and what is in force. Pure.

import type { GgufDetails } from "../../../core/gguf-facts.ts";
import type { JsonObject } from "./fields.ts";
import { detailsOf, type ModelFacts } from "./model-records.ts";

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
    "# What Model Gateway knows of this model; it cannot be built from this.",
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

function valuesOf(details: GgufDetails): JsonObject {
  const values: Record<string, unknown> = Object.fromEntries(details.values);
  for (const key of details.arrays.keys()) values[key] = null;
  return values;
}
