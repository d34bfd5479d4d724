// What a history must not keep: a secret that a person has taken out of the document would stay in it. Pure.
import type { Change } from "../../core/merge-patch.ts";
import { redactValue } from "../../core/redact.ts";
import type { DocumentTree } from "../document/document.ts";

/** One field, or a part of the document that came or went as a whole. Absent: it was or is not there. */
export type FieldChange = Pick<Change, "path"> & Partial<Change>;

export function redactTree(tree: DocumentTree): DocumentTree {
  return redactValue(tree, "");
}

export function redactChange({ path, before, after }: Change): Change {
  const name = path.at(-1) ?? "";
  return { path, before: redactValue(before, name), after: redactValue(after, name) };
}
