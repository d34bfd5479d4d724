// Fields of the document as the applied file has them. Pure.
import { GatewayError } from "../core/errors.ts";
import { isJsonObject, type Json } from "../core/json.ts";
import { type Change, listChanges, setAt } from "../core/merge-patch.ts";
import type { DocumentTree } from "./document/document.ts";
import { formatPath } from "./document/problem.ts";

/** Errors: `invalid_request` for a field that does not differ from the file. `fields` null: all of them. */
export function resetTree(applied: DocumentTree, tree: DocumentTree, fields: readonly string[] | null): DocumentTree {
  const changes = listChanges(applied, tree);
  if (fields === null) return changes.reduce((after, { path, before }) => setAt(after, path, before), tree);
  return fields.reduce((after, field) => resetField(after, field, changes), tree);
}

function resetField(tree: DocumentTree, field: string, changes: readonly Change[]): DocumentTree {
  const within = changes.filter(({ path }) => isWithin(path, field));
  if (within.length > 0) return within.reduce((after, { path, before }) => setAt(after, path, before), tree);
  for (const around of changes) {
    const part = partBelow(around, field);
    if (!part) continue;
    const without = setAt(tree, part.path, part.before);
    // A part that only calls have set leaves nothing behind; a model without fields is still a model.
    const isModel = around.path[0] === "models" && around.path.length === 2;
    const isLeft = around.before !== undefined || isModel || !isEmpty(valueAt(without, around.path));
    return isLeft ? without : setAt(without, around.path, undefined);
  }
  throw notDifferent(field, changes);
}

/** By keys: a model id has dots, so `models.acme/m:v1` starts the text `models.acme/m:v1.5` and is another model. */
function isWithin(path: readonly string[], field: string): boolean {
  return path.some((_, index) => formatPath(path.slice(0, index + 1)) === field);
}

/** The field in a part that came or went as a whole. */
function partBelow({ path, before, after }: Change, field: string): Change | null {
  const whole = after ?? before;
  if (!isJsonObject(whole)) return null;
  for (const key of Object.keys(whole)) {
    const part = { path: [...path, key], before: valueAt(before, [key]), after: valueAt(after, [key]) };
    const found = formatPath(part.path) === field ? part : partBelow(part, field);
    if (found) return found;
  }
  return null;
}

function valueAt(tree: Json | undefined, path: readonly string[]): Json | undefined {
  return path.reduce((value, key) => (isJsonObject(value) ? value[key] : undefined), tree);
}

function isEmpty(value: Json | undefined): boolean {
  return isJsonObject(value) && Object.keys(value).length === 0;
}

function notDifferent(field: string, changes: readonly Change[]): GatewayError {
  const paths = changes.slice(0, 10).map(({ path }) => formatPath(path));
  const others = paths.length === 0 ? "nothing does" : `what does: ${paths.join(", ")}`;
  return new GatewayError("invalid_request", `${field} does not differ from the applied file; ${others}`);
}
