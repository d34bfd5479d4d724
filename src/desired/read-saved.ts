// Reads desired.json and last-applied.json. What they hold is checked like any input: a person may have edited it.
import { isJsonObject, type JsonObject } from "../core/json.ts";
import { type PresetAllow, presetKeyProblem } from "../core/preset-keys.ts";
import { type DocumentTree, type Removal, toInput } from "./document/document.ts";
import { validateDocument } from "./document/validate.ts";
import type { Applied, Saved } from "./saved.ts";

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

export function readApplied(value: unknown, presetAllow: PresetAllow): Applied | null {
  // The file was its tree alone before it had a hash; no document has the key `tree`.
  const record = isJsonObject(value) && isJsonObject(value["tree"]) ? value : { tree: value };
  const tree = readTree(record["tree"], presetAllow);
  const text = (key: string): string | null => {
    const found = (record as Readonly<Record<string, unknown>>)[key];
    return typeof found === "string" ? found : null;
  };
  return (
    tree && {
      tree,
      sha256: text("sha256"),
      revision: text("revision"),
      by: text("by") ?? "file",
      at: text("at"),
      watched: text("watched"),
    }
  );
}

/** A damaged removal is dropped: it would delete what it names. */
function isRemoval(value: unknown): value is Removal {
  if (!isJsonObject(value)) return false;
  const isText = (item: unknown): boolean => typeof item === "string";
  const { id, repo, commit, requestedAt, by, projector, presetSection, names, files, blobs, commits = [] } = value;
  const lists = [names, files, blobs, commits].every((list) => Array.isArray(list) && list.every(isText));
  const texts = [id, repo, commit, requestedAt, by, projector ?? ""].every(isText);
  return lists && texts && projector !== undefined && typeof presetSection === "boolean";
}

/** `leftOut` gets the path of each preset key that is no longer allowed. */
function readTree(
  value: unknown,
  presetAllow: PresetAllow,
  leftOut: (path: string) => void = () => undefined,
): DocumentTree | null {
  if (!isJsonObject(value)) return null;
  const validation = validateDocument(toInput(withAllowedKeys(value, presetAllow, leftOut)), presetAllow);
  return validation.ok ? validation.tree : null;
}

/** Leaves out preset keys that were allowed when it was saved: else all that calls have set would be lost as damaged. */
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
