// What a history must not keep: a secret that a person has taken out of the document would stay in it. Pure.
import { equalJson, isJsonObject, type Json } from "../../core/json.ts";
import type { Change } from "../../core/merge-patch.ts";
import { redacted, redactValue } from "../../core/redact.ts";
import type { DocumentTree } from "../document/document.ts";

/** One field, or a part of the document that came or went as a whole. Absent: it was or is not there. */
export interface FieldChange {
  readonly path: readonly string[];
  readonly before?: Json;
  readonly after?: Json;
}

export function redactTree(tree: DocumentTree): DocumentTree {
  return redactValue(tree, "") as DocumentTree;
}

export function redactChange({ path, before, after }: Change): FieldChange {
  const name = path.at(-1) ?? "";
  return {
    path,
    ...(before === undefined ? {} : { before: redactValue(before, name) }),
    ...(after === undefined ? {} : { after: redactValue(after, name) }),
  };
}

/** The tree with the secrets that the document has by now at the same places; or the path of one that is nowhere any more. */
export function withSecrets(
  tree: DocumentTree,
  now: DocumentTree,
): { readonly tree: DocumentTree } | { readonly lost: readonly string[] } {
  let lost: readonly string[] | null = null;
  const restore = (value: Json, current: Json | undefined, path: readonly string[]): Json => {
    if (isJsonObject(value)) {
      const inner = isJsonObject(current) ? current : {};
      const entries = Object.entries(value).map(([key, each]): [string, Json] => [
        key,
        restore(each, Object.hasOwn(inner, key) ? inner[key] : undefined, [...path, key]),
      ]);
      return Object.fromEntries(entries);
    }
    if (!JSON.stringify(value).includes(redacted)) return value;
    if (current !== undefined && equalJson(redactValue(current, path.at(-1) ?? ""), value)) return current;
    lost ??= path;
    return value;
  };
  const restored = restore(tree, now, []) as DocumentTree;
  return lost === null ? { tree: restored } : { lost };
}
