// The facts of a model for Ollama's clients, from the catalog and the model's files.

import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createDetailsReader } from "../../cache/gguf/metadata.ts";
import { type Capability, capabilitiesOf } from "../../cache/layout/capabilities.ts";
import type { ModelView } from "../../catalog/catalog.ts";
import { GatewayError } from "../../core/errors.ts";
import { type GgufDetails, parameterSize } from "../../core/gguf-facts.ts";
import type { CachedModel } from "../../plan/observed.ts";
import { type ModelFacts, quantizationOf } from "./wire/model-records.ts";
import type { Need } from "./wire/options.ts";

const reader = createDetailsReader();

/** With the chat template in force; null: the file could not be read. */
export async function detailsOf({ model, templateFile }: ModelView): Promise<GgufDetails | null> {
  const details = await reader.read(model.files);
  if (details === null || templateFile === null) return details;
  // A template that is gone shows in the model's conditions; the file's own is used.
  const template = await readFile(templateFile, "utf8").catch(() => null);
  return template === null ? details : { ...details, template, templates: new Map() };
}

/** Of the vision projector; null where there is none. */
export async function detailsOfProjector({ projector }: ModelView): Promise<GgufDetails | null> {
  return projector === null ? null : reader.read([projector]);
}

/** Refuses what the model cannot do, by its files. Errors: `not_capable`, in Ollama's words. */
export async function requireCapabilities(
  viewed: () => ModelView | undefined,
  name: string,
  needs: readonly Need[],
): Promise<void> {
  const view = needs.length === 0 ? undefined : viewed();
  if (!view) return;
  const details = await detailsOf(view);
  const can: readonly Capability[] | null = details && capabilitiesOf(details, view.projector !== null);
  const missing = can === null ? undefined : needs.find((need) => !can.includes(need));
  if (missing !== undefined) throw new GatewayError("not_capable", `"${name}" does not support ${missing}`);
}

export async function factsOf(view: ModelView): Promise<ModelFacts> {
  const { model, contextLength } = view;
  const details = await detailsOf(view);
  const capabilities = details && capabilitiesOf(details, view.projector !== null);
  const parameters = details?.parameterCount ?? null;
  return {
    id: model.id,
    size: model.bytes,
    modifiedAt: model.modifiedAt,
    digest: model.digest ?? standInDigest(model),
    ...(model.architecture === null ? {} : { family: model.architecture }),
    ...(parameters === null ? {} : { parameterSize: parameterSize(parameters) }),
    quantization: quantizationOf(model.tag, model.fileType),
    ...(contextLength === null ? {} : { contextLength }),
    ...(capabilities === null ? {} : { capabilities }),
  };
}

/** A plain file has no content hash at hand; what is needed is a stable name for this content. */
function standInDigest(model: CachedModel): string {
  const [file = ""] = model.files;
  return createHash("sha256").update(`${file}:${model.bytes}:${model.modifiedAt}`).digest("hex");
}
