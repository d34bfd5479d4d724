// What desired.json holds, and what an edit makes of it. Writes nothing.
import { createHash } from "node:crypto";
import type { AppliedFile } from "../../schemas/applied.ts";
import { canonicalText, equalJson, type Frozen } from "../core/json.ts";
import { listChanges } from "../core/merge-patch.ts";
import {
  type DesiredState,
  type DocumentTree,
  emptyTree,
  type Removal,
  sparedAfter,
  standingRemovals,
  toDesired,
} from "./document/document.ts";

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

/** last-applied.json */
export interface Applied extends Frozen<AppliedFile> {
  readonly tree: DocumentTree;
  /** SHA-256 of gateway.yaml when it was merged last: not that of the applied text, once a call has applied another. */
  readonly watched: string | null;
}

/** The text of a gateway.yaml, read. */
export interface FileText {
  readonly tree: DocumentTree;
  readonly sha256: string | null;
  readonly revision?: string | undefined;
}

export function isSameText(a: Applied, b: Applied): boolean {
  const { by: _by, at: _at, ...rest } = a;
  const { by: _otherBy, at: _otherAt, ...other } = b;
  return equalJson({ ...rest }, { ...other });
}

export function describe(saved: Saved, applied: Applied | null): DesiredState {
  const hash = sha256(canonicalText(saved.tree));
  return {
    generation: saved.generation,
    tree: saved.tree,
    document: toDesired(saved.tree, saved.removals, saved.spared),
    hash,
    etag: `"g${saved.generation}-${hash.slice(0, 12)}"`,
    applied: applied && { sha256: applied.sha256, revision: applied.revision, by: applied.by, at: applied.at },
  };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

/** What an edit changes together with the document. */
export interface Beside {
  /** The file that the edit applies. */
  readonly file?: Applied;
  readonly removal?: Removal;
}

/** The next document; null where the edit changes nothing. */
export function afterEdit(
  { saved, applied }: { readonly saved: Saved; readonly applied: Applied | null },
  tree: DocumentTree,
  owner: FieldOwner,
  { file, removal }: Beside = {},
): Saved | null {
  const changes = listChanges(saved.tree, tree);
  if (changes.length === 0 && !removal) return null;
  const removals = standingRemovals(removal ? [...saved.removals, removal] : saved.removals, tree);
  const edit = { before: saved.tree, after: tree };
  const spared = sparedAfter(
    saved.spared,
    file ? { ...edit, file: { before: applied?.tree ?? emptyTree, after: file.tree } } : edit,
  );
  return {
    generation: saved.generation + 1,
    tree,
    owners: { ...saved.owners, ...Object.fromEntries(changes.map(({ path }) => [pathKey(path), owner])) },
    removals,
    spared: spared.filter((id) => !removals.some(({ names }) => names.includes(id))),
  };
}

/** Without a document it is the file as last applied: from nothing, the file would show no difference, and never be applied. */
export function startingFrom(applied: Applied | null, generation: number): Saved {
  return { generation, tree: applied?.tree ?? emptyTree, owners: {}, removals: [], spared: [] };
}

/** A field's key in `owners`. */
export function pathKey(path: readonly string[]): string {
  return JSON.stringify(path);
}
