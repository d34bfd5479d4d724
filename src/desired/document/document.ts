// The desired document in its canonical form, and how edits of it combine. Pure.
import type { AppliedFile } from "../../../schemas/applied.ts";
import type { DocumentInput } from "../../../schemas/document.ts";
import { equalJson, type Frozen, isJsonObject, type Json, type JsonObject } from "../../core/json.ts";
import { applyMergePatch } from "../../core/merge-patch.ts";
import { modelFileName } from "../../speech/transcription-models.ts";

/** A requested deletion, kept until the files are gone: one that was interrupted continues after a restart. */
export interface Removal {
  readonly id: string;
  /** `owner/name` */
  readonly repo: string;
  /** Every name of the model, the id too: a document that names one of them cancels the removal. */
  readonly names: readonly string[];
  /** Of the snapshot that held it. */
  readonly commit: string;
  /** Its files by their paths in the repository. Its id may be another model's once it is gone. */
  readonly files: readonly string[];
  /** The path of its projector, which may serve other models too. */
  readonly projector: string | null;
  /** Whether router.preset.ini gave it a context size of its own. */
  readonly presetSection: boolean;
  /** The blobs that they linked, noted before the first link goes: without links they are unknown. */
  readonly blobs: readonly string[];
  /** Revisions that have files of it, noted with the blobs: what a kill leaves of them is empty folders. */
  readonly commits?: readonly string[];
  /** ISO 8601 */
  readonly requestedAt: string;
  readonly by: string;
}

export type PresetValue = string | number | boolean;

type WrittenModel = Exclude<NonNullable<Frozen<DocumentInput>["models"]>[number], string>;

/** A name for a model with request settings of its own. */
export type Variant = Omit<NonNullable<WrittenModel["variants"]>[number], "set"> & { readonly set: JsonObject };

export type DesiredModel = Omit<WrittenModel, "ctxSize" | "variants"> & {
  readonly ctxSize?: number | "auto";
  readonly variants?: readonly Variant[];
};

/** Null: that half of it is off. */
export interface DesiredSpeech {
  /** The file's name: `ggml-base.en.bin`. */
  readonly transcription: string | null;
  /** A voice's id, composed (NFC). */
  readonly synthesis: string | null;
  /** `now`: engines run without requests. */
  readonly start: "lazy" | "now";
}

/** Bytes: one number for every device, or by device. */
export type DeviceSizes = number | Readonly<Record<string, number>>;

/** The desired state. Defaults are filled in; models are in the order of the document. */
export interface Desired {
  readonly version: 1;
  readonly context: { readonly default?: number };
  readonly models: readonly DesiredModel[];
  readonly prune: boolean;
  /** Seconds from when a model left the document. */
  readonly pruneAfter: number;
  readonly allowEmpty: boolean;
  readonly suspend: boolean;
  readonly memory: { readonly reserve?: DeviceSizes; readonly budget?: DeviceSizes };
  readonly rpc: {
    readonly mode: "single" | "rpc";
    readonly workers: readonly string[];
    readonly minWorkers: number;
    readonly allowPublicWorkers: boolean;
  };
  /** Null: off. */
  readonly speech: DesiredSpeech | null;
  /** Not part of the document as people write it, as is the next one. */
  readonly removals: readonly Removal[];
  /** Ids of models that left the document when a list of models was emptied: prune leaves them. */
  readonly spared: readonly string[];
}

/** The current document. */
export interface DesiredState {
  /** Counts documents: a change that changes nothing makes none. */
  readonly generation: number;
  readonly tree: DocumentTree;
  readonly document: Desired;
  /** SHA-256 of the document, in hex: gateways with the same document have the same one. */
  readonly hash: string;
  readonly etag: string;
  /** Null: no file was applied yet. It may change without a new generation: a comment, another revision. */
  readonly applied: Frozen<AppliedFile> | null;
}

/** What was written, without defaults, to merge by: models are keyed by id, so that edits of two models do not collide. */
export type DocumentTree = JsonObject;

/** Seconds: time to notice a typo in an id, and for an editor's second write. */
const defaultPruneAfter = 60;

export const emptyTree: DocumentTree = { version: 1 };

export function toTree(input: DocumentInput): DocumentTree {
  const { models, ...rest } = input;
  const tree: JsonObject = JSON.parse(JSON.stringify(rest)) as JsonObject;
  if (!models) return tree;
  const keyed = models.map((entry): [string, Json] => {
    if (typeof entry === "string") return [entry, {}];
    const { id, ...fields } = entry;
    return [id, JSON.parse(JSON.stringify(fields)) as Json];
  });
  return { ...tree, models: Object.fromEntries(keyed) };
}

/** The tree as a document that a person could have written: a model with nothing but its id in the short form. */
export function toInput(tree: DocumentTree): DocumentInput {
  const { models, ...rest } = tree;
  if (models === undefined) return rest as unknown as DocumentInput;
  if (!isJsonObject(models)) return tree as unknown as DocumentInput;
  const list = Object.entries(models).map(([id, fields]) => {
    if (!isJsonObject(fields)) return { id, "": fields };
    return Object.keys(fields).length === 0 ? id : { id, ...fields };
  });
  return { ...rest, models: list } as unknown as DocumentInput;
}

export function toDesired(
  tree: DocumentTree,
  removals: readonly Removal[] = [],
  spared: readonly string[] = [],
): Desired {
  const input = toInput(tree);
  return {
    version: 1,
    context: input.context ?? {},
    models: (input.models ?? []).map((entry) => (typeof entry === "string" ? { id: entry } : (entry as DesiredModel))),
    prune: input.prune ?? false,
    pruneAfter: input.pruneAfter ?? defaultPruneAfter,
    allowEmpty: input.allowEmpty ?? false,
    suspend: input.suspend ?? false,
    memory: toMemory(input.memory ?? {}),
    rpc: {
      mode: input.rpc?.mode ?? "single",
      workers: input.rpc?.workers ?? [],
      minWorkers: input.rpc?.minWorkers ?? 0,
      allowPublicWorkers: input.rpc?.allowPublicWorkers ?? false,
    },
    speech: input.speech ? toSpeech(input.speech) : null,
    removals,
    spared,
  };
}

function toMemory({ reserve, budget }: NonNullable<DocumentInput["memory"]>): Desired["memory"] {
  return {
    ...(reserve === undefined ? {} : { reserve: toSizes(reserve) }),
    ...(budget === undefined ? {} : { budget: toSizes(budget) }),
  };
}

type Size = number | string;

function toSizes(sizes: Size | Readonly<Record<string, Size>>): DeviceSizes {
  if (typeof sizes !== "object") return toBytes(sizes);
  return Object.fromEntries(Object.entries(sizes).map(([device, size]) => [device, toBytes(size)]));
}

const unitBytes: Readonly<Record<string, number>> = { KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40 };

function toBytes(size: Size): number {
  if (typeof size === "number") return size;
  return Math.round(Number.parseFloat(size) * (unitBytes[size.slice(-3)] ?? 1));
}

function toSpeech({ transcription, synthesis, start = "lazy" }: NonNullable<DocumentInput["speech"]>): DesiredSpeech {
  return {
    transcription: transcription ? (modelFileName(transcription.model) ?? transcription.model) : null,
    synthesis: synthesis ? synthesis.voice.normalize("NFC") : null,
    start,
  };
}

/** Those that the document does not take back by naming the model. */
export function standingRemovals(removals: readonly Removal[], tree: DocumentTree): readonly Removal[] {
  return removals.filter(isNotNamedBy(modelNames(tree)));
}

/** What passes those removals whose model none of these ids names. */
export function isNotNamedBy(ids: readonly string[]): (removal: Removal) => boolean {
  const named = new Set(ids.map((id) => id.toLowerCase()));
  return ({ names }) => !names.some((name) => named.has(name.toLowerCase()));
}

/** An edit of the document; with what the file was and is, where the file is the source of it. */
export interface TreeChange {
  readonly before: DocumentTree;
  readonly after: DocumentTree;
  readonly file?: { readonly before: DocumentTree; readonly after: DocumentTree };
}

/** Models that prune keeps: those that left by an edit that empties the list, and were not named again; none with `allowEmpty`. */
export function sparedAfter(spared: readonly string[], { before, after, file }: TreeChange): readonly string[] {
  if (after["allowEmpty"] === true) return [];
  const named = new Set(modelNames(after).map((id) => id.toLowerCase()));
  const isEmptied =
    named.size === 0 || (file && modelNames(file.before).length > 0 && modelNames(file.after).length === 0);
  const all = isEmptied ? [...spared, ...modelNames(before)] : spared;
  const left = new Map(all.map((id) => [id.toLowerCase(), id]));
  return [...left].flatMap(([folded, id]) => (named.has(folded) ? [] : id));
}

function modelNames({ models }: DocumentTree): readonly string[] {
  return isJsonObject(models) ? Object.keys(models) : [];
}

/** What the author changed since the file was last applied goes into the document, so that API calls elsewhere survive the edit. */
export function mergeFile(current: DocumentTree, lastApplied: DocumentTree, file: DocumentTree): DocumentTree {
  const merged = new Map(Object.entries(current));
  for (const key of Object.keys(lastApplied)) if (!Object.hasOwn(file, key)) merged.delete(key);
  for (const [key, after] of Object.entries(file)) {
    const before = Object.hasOwn(lastApplied, key) ? lastApplied[key] : undefined;
    if (before !== undefined && equalJson(before, after)) continue;
    // What a call removed and the author then edited comes back as the file has it, not as the edited part alone; of a
    // list of models only those that were edited.
    const now = merged.get(key) ?? (key === "models" ? {} : undefined);
    const nested = isJsonObject(after) && isJsonObject(now);
    merged.set(key, nested ? mergeFile(now, isJsonObject(before) ? before : {}, after) : after);
  }
  return Object.fromEntries(merged);
}

/** Not yet validated. `models` may be an object by id (merged, `null` removes) or a list (replaces the whole list). */
export function patchInput(current: DocumentTree, patch: JsonObject): unknown {
  const { models, ...rest } = patch;
  if (!Array.isArray(models)) return toInput(applyMergePatch(current, patch) as DocumentTree);
  return { ...toInput(applyMergePatch(current, rest) as DocumentTree), models };
}
