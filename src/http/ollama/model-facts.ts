// What Ollama's clients are shown of a model, from the catalog and the model's files.
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { createDetailsReader } from "../../cache/gguf/metadata.ts";
import { capabilitiesOf } from "../../cache/layout/capabilities.ts";
import type { ModelView } from "../../catalog/catalog.ts";
import { GatewayError } from "../../core/errors.ts";
import type { GgufDetails } from "../../core/gguf-facts.ts";
import { createSerial } from "../../core/serial.ts";
import { needBody } from "../../memory/need.ts";
import type { CachedModel } from "../../plan/observed.ts";
import { type FileFacts, factsOf, type ListedModel, type ShownModel } from "./wire/model-records.ts";
import type { Need } from "./wire/requests.ts";

const reader = createDetailsReader();

export async function shownModel(view: ModelView): Promise<ShownModel> {
  const { model, contextLength, projector } = view;
  const [details, need] = [await detailsOf(view), view.need()];
  const facts = details && factsOf(details, projector !== null);
  return { model, contextLength, digest: digestOf(model), facts, details, memory: need && needBody(need) };
}

export async function listedModel(view: ModelView): Promise<ListedModel> {
  const { model, contextLength } = view;
  return { model, contextLength, digest: digestOf(model), facts: await factsFor(view) };
}

/** A list of 1,000 models had all of their files open. */
const inTurn = createSerial();

/**
 * By the scan's own object, which is another one once a file of its repository has changed: to read the files of 1,000 models took
 * each list a second, as the reader remembers fewer.
 */
const known = new WeakMap<CachedModel, { readonly projector: string | null; readonly facts: FileFacts }>();

async function factsFor(view: ModelView): Promise<FileFacts | null> {
  // A template of the document's changes without a scan.
  if (view.templateFile !== null) return readFacts(view);
  return knownOf(view) ?? inTurn(async () => knownOf(view) ?? readFacts(view));
}

function knownOf({ model, projector }: ModelView): FileFacts | undefined {
  const before = known.get(model);
  return before?.projector === projector ? before.facts : undefined;
}

async function readFacts(view: ModelView): Promise<FileFacts | null> {
  const { model, projector, templateFile } = view;
  const details = await detailsOf(view);
  const facts = details && factsOf(details, projector !== null);
  if (facts && templateFile === null) known.set(model, { projector, facts });
  return facts;
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
function digestOf({ digest, files: [file = ""], bytes, modifiedAt }: CachedModel): string {
  return digest ?? createHash("sha256").update(`${file}:${bytes}:${modifiedAt}`).digest("hex");
}
