// In which fields the document differs from the file as it was last applied, and who set them.
import { type Change, listChanges } from "../core/merge-patch.ts";
import type { DocumentTree } from "./document/document.ts";
import { formatPath } from "./document/problem.ts";
import { type FieldOwner, pathKey, type Saved } from "./saved.ts";

/** A field in which the document differs from the file as it was last applied. */
export interface FieldDifference {
  readonly path: string;
  readonly file: Change["before"] | null;
  readonly desired: Change["after"] | null;
  readonly setBy: string;
  readonly at: string | null;
}

export function differencesBetween(applied: DocumentTree, { tree, owners }: Saved): FieldDifference[] {
  const lastOwner = ownersByPath(owners);
  return listChanges(applied, tree).map(({ path, before, after }) => {
    const owner = lastOwner(path);
    return {
      path: formatPath(path),
      file: before ?? null,
      desired: after ?? null,
      setBy: owner?.by ?? "unknown",
      at: owner?.at ?? null,
    };
  });
}

/** The last author in a field, around it or below it: several writes may have touched the difference. */
function ownersByPath(owners: Saved["owners"]): (path: readonly string[]) => FieldOwner | undefined {
  const later = (a: FieldOwner | undefined, b: FieldOwner | undefined): FieldOwner | undefined =>
    a && b ? (a.at < b.at ? b : a) : (a ?? b);
  const below = new Map<string, FieldOwner | undefined>();
  for (const [key, owner] of Object.entries(owners)) {
    const path = JSON.parse(key) as readonly string[];
    for (const prefix of prefixesOf(path)) below.set(prefix, later(below.get(prefix), owner));
  }
  return (path) =>
    prefixesOf(path.slice(0, -1))
      .map((around) => owners[around])
      .reduce(later, below.get(pathKey(path)));
}

/** The path itself too. */
function prefixesOf(path: readonly string[]): string[] {
  return [...path, ""].map((_, length) => pathKey(path.slice(0, length)));
}
