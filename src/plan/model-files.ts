// What the files and the draft model that the document names beside a model mean for the engine. Pure.
import type { Desired, DesiredModel } from "../desired/document/document.ts";
import { findCached } from "./find-model.ts";
import type { CachedModel, DocumentFile, Observed } from "./observed.ts";

/** The files by their names in the document. */
export function namedFiles({ chatTemplate, lora = [], mmproj }: DesiredModel): string[] {
  return [chatTemplate, ...lora.map(({ source }) => source), mmproj].filter((name) => name !== undefined);
}

export interface FileValues {
  /** Options of the engine. */
  readonly values: ReadonlyMap<string, string>;
  /** Those that yield to keys of the preset file's owner, and that not every engine has. */
  readonly defaults: ReadonlyMap<string, string>;
  /** Changes with the content of any of the files; empty where there is none. */
  readonly identity: string;
  /** Fields that are left out, and why. */
  readonly problems: readonly string[];
}

export const noFiles: FileValues = { values: new Map(), defaults: new Map(), identity: "", problems: [] };

/** A field of which anything is unfit is left out whole. */
export function fileValues(
  model: DesiredModel,
  desired: Desired,
  models: readonly CachedModel[],
  files: ReadonlyMap<string, DocumentFile>,
): FileValues {
  const values = new Map<string, string>();
  const identities: string[] = [];
  const problems: string[] = [];

  /** The path to give to the engine; null where there is none. */
  function pathOf(field: string, name: string): string | null {
    const file = files.get(name) ?? { state: "unfit", why: `${name} has not been read yet` };
    const why = whyUnfit(field, name, file);
    if (why !== null) problems.push(`${field} is left out: ${why}`);
    if (why !== null || file.state === "unfit") return null;
    identities.push(file.identity);
    return file.path;
  }

  const { chatTemplate, mmproj, lora = [] } = model;
  const template = chatTemplate === undefined ? null : pathOf("chatTemplate", chatTemplate);
  if (template !== null) values.set("chat-template-file", template);
  const projector = mmproj === undefined ? null : pathOf("mmproj", mmproj);
  if (projector !== null) values.set("mmproj", projector);
  const adapters = lora.map(({ source, scale = 1 }) => ({ path: pathOf("lora", source), scale }));
  if (adapters.length > 0 && adapters.every(({ path }) => path !== null))
    values.set("lora-scaled", adapters.map(({ path, scale }) => `${path}:${scale}`).join(","));
  const draft = model.draft === undefined ? null : findDraft(model, model.draft, desired, models);
  if (typeof draft === "string") problems.push(`draft is left out: ${draft}`);
  else if (draft) {
    values.set("model-draft", draft.files[0] ?? "");
    identities.push(draft.digest?.slice(0, 12) ?? draft.modifiedAt.toString(36));
  }
  return {
    values,
    // Without a type the engine loads the draft model and never asks it.
    defaults: new Map(values.has("model-draft") ? [["spec-type", "draft-simple"]] : []),
    identity: identities.join("."),
    problems,
  };
}

/** What the preset file cannot hold; the router cuts and trims values. */
const unholdable = /[#;\r\n]|^\s|\s$/;

/** Why the engine cannot be given a file; null where it can. */
export function whyUnfit(field: string, name: string, file: DocumentFile): string | null {
  if (file.state === "unfit") return file.why;
  if (field !== "chatTemplate" && !file.isGguf) return `${name} is not a GGUF file`;
  // Commas part the adapters there, and a colon the scale.
  const isFit = !unholdable.test(file.path) && !(field === "lora" && /[,:]/.test(file.path));
  return isFit ? null : `the engine cannot take the path of ${name}`;
}

/** Why there is none, in words. */
function findDraft(
  model: DesiredModel,
  draft: string,
  desired: Desired,
  models: readonly CachedModel[],
): CachedModel | string {
  const others = desired.models.filter(({ id }) => id !== model.id);
  if (!others.some(({ id }) => id.toLowerCase() === draft.toLowerCase()))
    return `${draft} is not another model of the document`;
  const cached = findCached(models, draft);
  if (!cached?.complete) return `${draft} is not in the model cache yet`;
  return unholdable.test(cached.files[0] ?? "") ? `the engine cannot take the path of ${draft}` : cached;
}

/** Of the local file that a model is imported from. */
export type SourceState = "current" | "changed" | "missing";

/** By path, size and time; the import compares the content, by its hash. */
export function sourceState({ id, source }: DesiredModel, { inventory, sources }: Observed): SourceState {
  const file = source === undefined ? undefined : sources.get(source);
  if (!file) return "current";
  if (file.stamp === null) return "missing";
  const imported = inventory.find((entry) => entry.id.toLowerCase() === id.toLowerCase())?.source;
  return imported?.path === file.path && imported.stamp === file.stamp ? "current" : "changed";
}
