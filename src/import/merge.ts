// Adds imported models to a document. What the document has stays as it is.
import { foldName } from "../core/ids.ts";
import { isJsonObject, type Json, type JsonObject } from "../core/json.ts";
import type { DesiredModel, DocumentTree } from "../desired/document/document.ts";
import type { Remark } from "./imported.ts";

export interface Merged {
  readonly tree: DocumentTree;
  /** Ids, in the order of the import. */
  readonly added: readonly string[];
  readonly remarks: readonly Remark[];
}

/** Models whose id the document has are left out, and so are names that it has. */
export function merge(tree: DocumentTree, models: readonly DesiredModel[]): Merged {
  const before = isJsonObject(tree["models"]) ? tree["models"] : {};
  const names = new Set(Object.entries(before).flatMap(([id, fields]) => [id, ...namesIn(fields)].map(foldName)));
  const after: Record<string, Json> = { ...before };
  const added: string[] = [];
  const remarks: Remark[] = [];
  const ids = new Set(Object.keys(before).map(foldName));
  for (const { id } of models) if (!ids.has(foldName(id))) names.add(foldName(id));
  for (const { id, aliases, variants, ...fields } of models) {
    if (ids.has(foldName(id))) {
      remarks.push({ about: id, message: "is in the document already and stays as it is" });
      continue;
    }
    const isFree = (name: string): boolean => {
      if (!names.has(foldName(name))) {
        names.add(foldName(name));
        return true;
      }
      // An alias of its own id would change nothing.
      if (foldName(name) !== foldName(id))
        remarks.push({ about: id, message: `does not get the name ${name}: another model has it` });
      return false;
    };
    const free = {
      aliases: aliases?.filter(isFree) ?? [],
      variants: variants?.filter(({ name }) => isFree(name)) ?? [],
    };
    const lists = Object.fromEntries(Object.entries(free).filter(([, list]) => list.length > 0));
    after[id] = { ...fields, ...lists } as unknown as JsonObject;
    added.push(id);
  }
  return { tree: { ...tree, models: after }, added, remarks };
}

function namesIn(fields: Json | undefined): string[] {
  if (!isJsonObject(fields)) return [];
  const aliases = Array.isArray(fields["aliases"]) ? (fields["aliases"] as readonly Json[]) : [];
  const variants = Array.isArray(fields["variants"]) ? (fields["variants"] as readonly Json[]) : [];
  return [...aliases, ...variants.map((variant) => (isJsonObject(variant) ? variant["name"] : undefined))].filter(
    (name) => typeof name === "string",
  );
}
