// JSON merge patch (RFC 7396) on plain trees, and the list of changes between two of them. Pure.
import { equalJson, isJsonObject, type Json, type JsonObject } from "./json.ts";

export interface Change {
  /** Keys from the root to the value; arrays and scalars are whole values. */
  readonly path: readonly string[];
  /** undefined: was or is absent. */
  readonly before: Json | undefined;
  readonly after: Json | undefined;
}

/** The target with the patch merged in; `null` in the patch deletes. Neither argument is changed. */
export function applyMergePatch(target: Json | undefined, patch: Json): Json {
  if (!isJsonObject(patch)) return patch;
  const result = new Map<string, Json>(isJsonObject(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) result.delete(key);
    else result.set(key, applyMergePatch(result.get(key), value));
  }
  // fromEntries defines own properties, so a key named __proto__ stays data.
  return Object.fromEntries(result);
}

/** Every leaf in which two trees differ. */
export function listChanges(from: Json | undefined, to: Json | undefined, path: readonly string[] = []): Change[] {
  if (isJsonObject(from) && isJsonObject(to)) {
    const keys = new Set([...Object.keys(from), ...Object.keys(to)]);
    return [...keys].flatMap((key) => listChanges(own(from, key), own(to, key), [...path, key]));
  }
  if (from !== undefined && to !== undefined && equalJson(from, to)) return [];
  if (from === undefined && to === undefined) return [];
  return [{ path, before: from, after: to }];
}

function own(object: JsonObject, key: string): Json | undefined {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** The tree with a value set; undefined removes it. */
export function setAt(tree: JsonObject, path: readonly string[], value: Json | undefined): JsonObject {
  const [key, ...rest] = path;
  if (key === undefined) return isJsonObject(value) ? value : tree;
  const entries = new Map(Object.entries(tree));
  const inner = entries.get(key);
  if (rest.length > 0) entries.set(key, setAt(isJsonObject(inner) ? inner : {}, rest, value));
  else if (value === undefined) entries.delete(key);
  else entries.set(key, value);
  return Object.fromEntries(entries);
}
