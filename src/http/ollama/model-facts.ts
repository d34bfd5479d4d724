// What Ollama's clients are shown of a model, from the catalog and the model's files.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createDetailsReader } from "../../cache/gguf/metadata.ts";
import { capabilitiesOf } from "../../cache/layout/capabilities.ts";
import type { ModelView } from "../../catalog/catalog.ts";
import { GatewayError } from "../../core/errors.ts";
import type { GgufDetails } from "../../core/gguf-facts.ts";
import { needBody } from "../../memory/need.ts";
import type { CachedModel } from "../../plan/observed.ts";
import type { ShownModel } from "./wire/model-records.ts";
import type { Need } from "./wire/requests.ts";

const reader = createDetailsReader();

export async function shownModel(view: ModelView): Promise<ShownModel> {
  const digest = view.model.digest ?? standInDigest(view.model);
  const need = view.need();
  return { ...view, details: await detailsOf(view), digest, memory: need && needBody(need) };
}

/** With the chat template in force; null: the file could not be read. */
async function detailsOf({ model, templateFile }: ModelView): Promise<GgufDetails | null> {
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
export async function requireCapabilities(view: ModelView, name: string, needs: readonly Need[]): Promise<void> {
  const details = await detailsOf(view);
  if (!details) return;
  const can = new Set<string>(capabilitiesOf(details, view.projector !== null));
  const missing = needs.find((need) => !can.has(need));
  if (missing !== undefined) throw new GatewayError("not_capable", `"${name}" does not support ${missing}`);
}

/** A plain file has no content hash at hand; what is needed is a stable name for this content. */
function standInDigest({ files: [file = ""], bytes, modifiedAt }: CachedModel): string {
  return createHash("sha256").update(`${file}:${bytes}:${modifiedAt}`).digest("hex");
}
