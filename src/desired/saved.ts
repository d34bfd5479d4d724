// desired.json and last-applied.json on disk: their shapes and checks. Writes nothing.
import { createHash } from "node:crypto";
import { isJsonObject, type JsonObject } from "../core/json.ts";
import { type Change, listChanges } from "../core/merge-patch.ts";
import { type PresetAllow, presetKeyProblem } from "../core/preset-keys.ts";
import {
  type DesiredState,
  type DocumentTree,
  emptyTree,
  type Removal,
  sparedAfter,
  standingRemovals,
  toDesired,
  toInput,
} from "./document/document.ts";
import { formatPath, validateDocument } from "./document/validate.ts";

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

/** What an edit changes together with the document. */
export interface Beside {
  /** The file that the edit applies. */
  readonly file?: DocumentTree;
  readonly removal?: Removal;
}

/** The next document; null where the edit changes nothing. */
export function afterEdit(
  { saved, applied }: { readonly saved: Saved; readonly applied: DocumentTree | null },
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
    file ? { ...edit, file: { before: applied ?? emptyTree, after: file } } : edit,
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
  const isText = (item: unknown): boolean => typeof item === "string";
  const { id, repo, commit, requestedAt, by, projector, presetSection, names, files, blobs, commits = [] } = value;
  const lists = [names, files, blobs, commits].every((list) => Array.isArray(list) && list.every(isText));
  const texts = [id, repo, commit, requestedAt, by, projector ?? ""].every(isText);
  return lists && texts && projector !== undefined && typeof presetSection === "boolean";
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

function pathKey(path: readonly string[]): string {
  return JSON.stringify(path);
}
