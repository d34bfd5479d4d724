// desired.json and last-applied.json on disk: their shapes and checks. Writes nothing.
import { createHash } from "node:crypto";
import { isJsonObject, type JsonObject } from "../core/json.ts";
import { type PresetAllow, presetKeyProblem } from "../core/preset-keys.ts";
import {
  type DesiredState,
  type DocumentTree,
  emptyTree,
  type Removal,
  toDesired,
  toInput,
} from "./document/document.ts";
import { validateDocument } from "./document/validate.ts";

/** Who wrote a field last, and when (ISO 8601). */
export interface FieldOwner {
  readonly by: string;
  readonly at: string;
}

/** desired.json */
export interface Saved {
  readonly generation: number;
  readonly tree: DocumentTree;
  readonly owners: Readonly<Record<string, FieldOwner>>;
  readonly removals: readonly Removal[];
  /** See {@link Desired.spared}. */
  readonly spared: readonly string[];
}

export function describe(saved: Saved): DesiredState {
  const hash = createHash("sha256").update(JSON.stringify(saved.tree)).digest("hex").slice(0, 12);
  return {
    generation: saved.generation,
    tree: saved.tree,
    document: toDesired(saved.tree, saved.removals, saved.spared),
    etag: `"g${saved.generation}-${hash}"`,
  };
}

/**
 * A missing document starts from the file as last applied. Started from nothing, the file would show no difference, and the
 * document would stay empty.
 */
export function startingFrom(applied: DocumentTree | null): Saved {
  return { generation: 0, tree: applied ?? emptyTree, owners: {}, removals: [], spared: [] };
}

/** What the state file holds is checked like any input: a person may have edited it. */
export function readSaved(value: unknown, presetAllow: PresetAllow, leftOut?: (path: string) => void): Saved | null {
  if (!isJsonObject(value) || !Number.isSafeInteger(value["generation"])) return null;
  const tree = readTree(value["tree"], presetAllow, leftOut);
  const owners = isJsonObject(value["owners"]) ? (value["owners"] as unknown as Saved["owners"]) : {};
  const removals = Array.isArray(value["removals"]) ? (value["removals"] as readonly unknown[]) : [];
  const spared = Array.isArray(value["spared"]) ? (value["spared"] as readonly unknown[]) : [];
  return (
    tree && {
      generation: value["generation"] as number,
      tree,
      owners,
      removals: removals.filter(isRemoval),
      spared: spared.filter((id) => typeof id === "string"),
    }
  );
}

/** A damaged removal is dropped: it would delete what it names. */
function isRemoval(value: unknown): value is Removal {
  if (!isJsonObject(value)) return false;
  const isList = (list: unknown): boolean => Array.isArray(list) && list.every((item) => typeof item === "string");
  const texts = ["id", "repo", "commit", "requestedAt", "by"].every((key) => typeof value[key] === "string");
  if (value["projector"] !== null && typeof value["projector"] !== "string") return false;
  if (typeof value["presetSection"] !== "boolean") return false;
  if (value["commits"] !== undefined && !isList(value["commits"])) return false;
  return texts && ["names", "files", "blobs"].every((key) => isList(value[key]));
}

/** `leftOut` gets the path of each preset key that is no longer allowed. */
export function readTree(
  value: unknown,
  presetAllow: PresetAllow,
  leftOut: (path: string) => void = () => undefined,
): DocumentTree | null {
  if (!isJsonObject(value)) return null;
  const validation = validateDocument(toInput(withAllowedKeys(value, presetAllow, leftOut)), presetAllow);
  return validation.ok ? validation.tree : null;
}

/**
 * Preset keys that were allowed when the document was saved, by an older version or another `--preset-allow`, are left out.
 * Without that the document would count as damaged, and all that calls have set would be lost.
 */
function withAllowedKeys(tree: JsonObject, presetAllow: PresetAllow, leftOut: (path: string) => void): JsonObject {
  const { models } = tree;
  if (!isJsonObject(models)) return tree;
  const kept = Object.entries(models).map(([id, model]) => {
    if (!isJsonObject(model) || !isJsonObject(model["preset"])) return [id, model] as const;
    const preset = Object.entries(model["preset"]).filter(([key]) => {
      const isAllowed = presetKeyProblem(key, presetAllow) === null;
      if (!isAllowed) leftOut(`${id}.preset.${key}`);
      return isAllowed;
    });
    return [id, { ...model, preset: Object.fromEntries(preset) }] as const;
  });
  return { ...tree, models: Object.fromEntries(kept) };
}
